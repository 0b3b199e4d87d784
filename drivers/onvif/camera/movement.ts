/** One movement of a camera or its lens: begun, ended by the driver, and seen to have ended. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { CommandRefused, notSent } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { describe } from '../soap/soap.ts';
import type { SoapOutcome } from '../soap/soap.ts';
import { continuousMove, type Motor, motorKey, move_deadline_ms, settled, stop } from './ptz-stop.ts';
import { texts } from '../texts.ts';

export interface PtzParts extends Motor {
  /** By `motorKey`. */
  readonly owed: OwedStops<string>;
  readonly move_ms: number;
  /** Aborts with the connection and ends every movement. */
  readonly signal: AbortSignal;
  /** Registers each stop in progress, so that the driver waits for it. */
  readonly stopping: (stop: Promise<unknown>) => void;
}

/** How long the driver checks for the end of a movement. */
const still_within_ms = 3_000;

/** Moves for `move_ms` and stops; without a velocity it only stops. Throws CommandRefused. */
export async function move(
  parts: PtzParts,
  velocity: readonly [number, number] | undefined,
  context: CommandContext,
) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  if (!velocity) {
    const { stopped } = await stopForSure(parts);
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
  const outcome = await start(parts, velocity);
  if (outcome.kind === 'fault') {
    await owed.confirm(key);
    throw new CommandRefused(`${describe(outcome)}; no movement began`);
  }
  // Without an answer the camera may move nevertheless.
  if (outcome.kind === 'reply') await sleep(parts.move_ms, signal);
  const { stopped, stopped_ms } = await stopForSure(parts);
  if (outcome.kind === 'failure') {
    // A slow camera may begin to move after this stop: another one is sent soon.
    await owed.owe(key);
    throw new CommandRefused(`${describe(outcome)}; whether it moved is unknown, a stop was sent`);
  }
  if (signal.aborted) throw new CommandRefused(texts.cancelled_stopped);
  return { moved_ms: Math.round(stopped_ms - begin_ms), stopped };
}

/** Some cameras refuse a timeout, others accept and ignore it, so the driver always sends the stop. */
async function start(parts: PtzParts, velocity: readonly [number, number]): Promise<SoapOutcome> {
  const timeout = `<Timeout>PT${Math.ceil(parts.move_ms / 1_000)}S</Timeout>`;
  const first = await parts.soap.call(continuousMove(parts, velocity, timeout));
  if (first.kind !== 'fault' || first.code === 'NotAuthorized') return first;
  return parts.soap.call(continuousMove(parts, velocity, ''));
}

/** Stops the camera, also after the task was aborted, and checks that it stands still. Throws when it may still be moving. */
export async function stopForSure(parts: PtzParts) {
  const work = stop(parts);
  parts.stopping(work.catch(() => undefined));
  const refusal = await work;
  const stopped_ms = performance.now();
  if (refusal !== undefined) {
    await parts.owed.owe(motorKey(parts));
    throw new CommandRefused(texts.stop_rejected(refusal));
  }
  await parts.owed.confirm(motorKey(parts));
  const moving = await settled(parts, still_within_ms, parts.signal);
  if (moving === true) throw new CommandRefused(texts.still_moving);
  return { stopped: moving === false ? 'seen' : 'accepted', stopped_ms };
}

export function refuseAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new CommandRefused(notSent('cancelled'));
}
