/** Movements of a camera or its lens: begun, seen to have ended, and ended by the driver where they do not end by themselves. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { CommandRefused, notSent } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { describe, type Operation, type SoapOutcome } from '../soap/soap.ts';
import {
  continuousMove,
  type HasArrived,
  type Motor,
  motorKey,
  move_deadline_ms,
  readStatus,
  sendStill,
  settled,
  stop,
} from './ptz-stop.ts';
import { attribute, find, type XmlNode } from '../soap/xml.ts';
import { texts } from '../texts.ts';
import { untilAborted } from '../waiting.ts';

export interface PtzParts extends Motor {
  /** By `motorKey`. */
  readonly owed: OwedStops<string>;
  readonly move_ms: number;
  /** Aborts with the connection and ends every movement. */
  readonly signal: AbortSignal;
  /** Registers each stop in progress, so that the driver waits for it. */
  readonly stopping: (stop: Promise<unknown>) => void;
  /** Ends what goes on after a Stop; resolves with why it does. Left out: nothing does. */
  readonly endTours?: (() => Promise<string | undefined>) | undefined;
}

/** The turns of a motor, which several lenses may share: a movement begins when the last one was stopped, whose stop must not end it. */
export class MotorTurns {
  #last: Promise<unknown> = Promise.resolve();
  #now = new AbortController();

  /** The signal aborts when the turn must end. */
  async take<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#now;
    const mine = this.#last.then(async () => work(signal));
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  /** Ends all turns until now. */
  interrupt(): void {
    this.#now.abort();
    this.#now = new AbortController();
  }
}

/** What the commands of one profile share. */
export interface Control {
  readonly motor: Omit<PtzParts, 'axis'>;
  readonly turns: MotorTurns;
  /** `name`: of the command. The motor of a turn ends its movement with the turn. */
  readonly inTurn: <T>(name: string, work: (motor: Omit<PtzParts, 'axis'>) => Promise<T>) => Promise<T>;
}

/** The camera does not have this movement, whatever it reported of itself. */
export class MovementUnsupported extends CommandRefused {}

/** How long the driver checks for the end of a movement. */
const still_within_ms = 3_000;
/** One that moves on for longer after it accepted Stop gets velocity 0. */
const stops_within_ms = 1_000;
/** A camera that stands still after it accepted a way has so long to begin. */
export const begins_within_ms = 1_000;
/** Time on the way to a position. */
const way_max_ms = 20_000;

/** Moves for `move_ms` and stops; without a velocity it only stops. Throws CommandRefused. */
export async function move(
  parts: PtzParts,
  velocity: readonly [number, number] | undefined,
  context: CommandContext,
) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  if (!velocity) {
    const { stopped } = await stopForSure(parts, signal);
    return { stopped };
  }
  if (context.remaining_ms() < parts.move_ms + move_deadline_ms) {
    throw new CommandRefused(notSent(texts.too_little_time));
  }
  const { owed } = parts;
  const key = motorKey(parts);
  // On disk before the camera moves: after a power cut the Stop is the first request to it.
  await owed.owe(key);
  if (signal.aborted) await owed.confirm(key);
  refuseAborted(signal);
  const begin_ms = performance.now();
  const outcome = await begin(parts, start(parts, velocity, signal), signal);
  if (outcome.kind === 'fault') {
    await owed.confirm(key);
    throw refusalOf(outcome);
  }
  // Without an answer the camera may move nevertheless.
  if (outcome.kind === 'reply') await sleep(parts.move_ms, signal);
  const { stopped, stopped_ms } = await stopForSure(parts, signal);
  if (outcome.kind === 'failure') {
    // A slow camera may begin to move after this stop: another one is sent soon.
    await owed.owe(key);
    throw new CommandRefused(`${describe(outcome)}; whether it moved is unknown, a stop was sent`);
  }
  if (signal.aborted) throw new CommandRefused(texts.cancelled_stopped);
  return { moved_ms: Math.round(stopped_ms - begin_ms), stopped };
}

/** Some cameras refuse a timeout, others accept and ignore it, so the driver always sends the stop. */
async function start(
  parts: PtzParts,
  velocity: readonly [number, number],
  signal: AbortSignal,
): Promise<SoapOutcome> {
  const timeout = `<Timeout>PT${Math.ceil(parts.move_ms / 1_000)}S</Timeout>`;
  const first = await parts.soap.call(continuousMove(parts, velocity, timeout));
  if (first.kind !== 'fault' || first.code === 'NotAuthorized' || signal.aborted) return first;
  return parts.soap.call(continuousMove(parts, velocity, ''));
}

/** Whether a camera is where it was sent, as far as it reports that. */
export interface Arrival {
  readonly hasArrived: HasArrived;
  /** As of the last status; undefined where that does not say it. */
  readonly isThere: () => boolean | undefined;
}

/**
 * Sends the camera on a way that ends by itself; resolves once it stands still: `seen` where it is seen there, to move or elsewhere than
 * before, since some accept a way and stay (starkillerOG/reolink_aio#147). Throws CommandRefused.
 */
export async function travel(
  parts: PtzParts,
  asked: Operation,
  context: CommandContext,
  arrival?: Arrival,
): Promise<'seen' | 'accepted'> {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  const before = await readStatus(parts, begins_within_ms, signal);
  refuseAborted(signal);
  const outcome = await begin(parts, parts.soap.call({ ...asked, url: parts.url }), signal);
  if (outcome.kind === 'fault') throw refusalOf(outcome);
  if (outcome.kind === 'failure' && !signal.aborted) {
    throw new CommandRefused(texts.movement_unknown(describe(outcome)));
  }
  const left_ms = Math.min(way_max_ms, Math.max(0, context.remaining_ms() - move_deadline_ms));
  const begin_ms = performance.now();
  let hasMoved = false;
  const hasArrived: HasArrived = (status, wasMoving) => {
    hasMoved = wasMoving || isElsewhere(status, before);
    const hasBegun = hasMoved || performance.now() > begin_ms + begins_within_ms;
    return arrival ? arrival.hasArrived(status, wasMoving) : hasBegun;
  };
  const moving = await settled(parts, left_ms, signal, hasArrived);
  if (signal.aborted) {
    await stopForSure(parts, signal);
    throw new CommandRefused(texts.cancelled_stopped);
  }
  if (moving === true) throw new CommandRefused(texts.preset_late);
  return moving === false && (arrival?.isThere() ?? hasMoved) ? 'seen' : 'accepted';
}

/** False where the camera does not report where it looks. */
function isElsewhere(status: XmlNode | undefined, before: XmlNode | undefined): boolean {
  const [now, then] = [status, before].map((each) =>
    ['panTilt', 'zoom'].flatMap((part) => {
      const at = find(each, 'position', part);
      return ['x', 'y'].map((axis) => attribute(at, axis));
    }),
  );
  return (now ?? []).some((value, index) => value !== undefined && value !== (then?.[index] ?? value));
}

/**
 * Waits for the answer to a movement. One that is cancelled before is stopped at once; the caller stops it again after the answer, since
 * the camera may begin to move only then.
 */
export async function begin(
  parts: PtzParts,
  answer: Promise<SoapOutcome>,
  signal: AbortSignal,
): Promise<SoapOutcome> {
  const outcome = await untilAborted(answer, signal);
  if (outcome) return outcome;
  const early = stop(parts);
  parts.stopping(Promise.allSettled([early, answer]));
  await early;
  return answer;
}

export function refusalOf(outcome: Extract<SoapOutcome, { kind: 'fault' }>): CommandRefused {
  const sentence = texts.no_movement(describe(outcome));
  // agsh/onvif#9, cdavis-code/easy_onvif_workspace#26, blakeblackshear/frigate#8044.
  const isUnsupported = /^(?:Space|Action|PTZ)NotSupported$/u.test(outcome.code);
  return isUnsupported ? new MovementUnsupported(sentence) : new CommandRefused(sentence);
}

/** Stops the camera, also after the task was aborted, and checks that it stands still. Throws when it may still be moving. */
export async function stopForSure(parts: PtzParts, signal: AbortSignal) {
  const work = halt(parts, signal);
  parts.stopping(work.catch(() => undefined));
  const { isSeen, stopped_ms } = await work;
  const moving = isSeen ? false : await settled(parts, still_within_ms, signal);
  if (moving === true) throw new CommandRefused(texts.still_moving);
  return { stopped: moving === false ? 'seen' : 'accepted', stopped_ms };
}

/** `isSeen`: the camera reports that it stands still; else it gets velocity 0 as well. */
async function halt(
  parts: PtzParts,
  signal: AbortSignal,
): Promise<{ readonly isSeen: boolean; readonly stopped_ms: number }> {
  const refusal = (await stop(parts)) ?? (await parts.endTours?.());
  const accepted_ms = performance.now();
  if (refusal !== undefined) {
    await parts.owed.owe(motorKey(parts));
    throw new CommandRefused(texts.stop_rejected(refusal));
  }
  const moving = await settled(parts, stops_within_ms, signal);
  if (moving !== false) await sendStill(parts);
  await parts.owed.confirm(motorKey(parts));
  return { isSeen: moving === false, stopped_ms: moving === true ? performance.now() : accepted_ms };
}

export function refuseAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new CommandRefused(notSent('cancelled'));
}
