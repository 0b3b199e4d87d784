/** Checks before a command is sent: is the vehicle there, is there time, does its situation allow it. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Place } from '../vehicles/geo.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { Height } from './altitude.ts';
import { spare_ms, time_min_ms } from './exchange.ts';
import { admitTarget, not_yet_reported, type Waypoint } from './gate.ts';
import { texts } from './texts.ts';
import type { Addressee, Commanded } from '../vehicles/addressee.ts';

export interface Bounded extends Commanded {
  /** An older task is refused. */
  readonly task_age_max_ms: number;
  /** Returns why the fence that the vehicle has stored is against a way; undefined where nothing known of it is. */
  readonly againstFence?: (way: FencedWay, context: CommandContext) => Promise<string | undefined>;
}

export interface FencedWay {
  /** Undefined: only the target counts. */
  readonly from?: Place | undefined;
  readonly to: Place;
  /** Of a circle around the target. */
  readonly radius_m?: number;
  /** Undefined: the height does not count. */
  readonly above_home_m?: number;
}

/** `any`: also a vehicle that reports once a minute over a satellite, for commands that make it safer. */
type Reports = 'any' | 'recent';

/** Returns the vehicle if it can be reached and there is time to observe the effect. */
export function reach(
  vehicle: Bounded,
  context: CommandContext,
  reports: Reports = 'recent',
): { readonly to: Addressee; readonly situation: Situation } {
  context.signal.throwIfAborted();
  const left_ms = context.remaining_ms();
  if (left_ms < time_min_ms) throw notSent(texts.time_short((left_ms / 1_000).toFixed(1)));
  // Unknown if the kit's clock was not set; the task runner has already decided whether the task may run then.
  const age_ms = context.age_ms?.() ?? 0;
  // What a restart interrupted was in time, and only commands that change nothing run again.
  if (context.repeated !== true && age_ms > vehicle.task_age_max_ms) {
    throw notSent(texts.task_old((age_ms / 1_000).toFixed(1), vehicle.task_age_max_ms / 1_000));
  }
  const found = vehicle.address();
  if ('obstacle' in found) throw notSent(found.obstacle);
  if (found.situation.is_high_latency && reports === 'recent')
    throw notSent(texts.about(found.to.name, texts.high_latency));
  return found;
}

/** A vehicle that is received for the first time, or has restarted, has reported all that is requested from it after this time. */
const reporting_ms = 30_000;

/**
 * Returns the same, and what `check` makes of the situation unless that is a reason against the command. What the vehicle has not
 * reported since it was first received, as after a restart of the kit, is waited for within the time of the task.
 */
export async function admit<T>(
  vehicle: Bounded,
  context: CommandContext,
  check: (situation: Situation) => T | string,
  reports?: Reports,
): Promise<{ readonly to: Addressee; readonly situation: Situation; readonly checked: T }> {
  const found = reach(vehicle, context, reports);
  const { to } = found;
  const isAwaited = (checked: T | string): boolean =>
    typeof checked === 'string' && not_yet_reported.has(checked);
  let admitted = { ...found, checked: check(found.situation) };
  const look = (): true | undefined => {
    const now = vehicle.address();
    if ('obstacle' in now) return undefined;
    admitted = { ...now, checked: check(now.situation) };
    return isAwaited(admitted.checked) ? undefined : true;
  };
  if (isAwaited(admitted.checked)) {
    const wait_ms = Math.min(spare_ms(context), to.contact.begun_ms + reporting_ms - performance.now());
    await to.changes.until(look, Math.max(0, wait_ms), context.signal);
    context.signal.throwIfAborted();
  }
  const { checked } = admitted;
  if (typeof checked === 'string') throw notSent(texts.about(to.name, checked));
  return { ...admitted, checked };
}

export interface Admitted {
  readonly to: Addressee;
  readonly situation: Situation;
  readonly target: Waypoint;
  readonly height: Height;
}

export interface Flight {
  /** The target; undefined while the position of the vehicle, which it depends on, is unknown. */
  readonly targetOf: (situation: Situation) => Waypoint | undefined;
  readonly options: MavlinkOptions['goto'];
  readonly radius_m?: number;
  /** Further limits. */
  readonly admit?: (situation: Situation, height: Height) => string | undefined;
}

/** Returns the vehicle and the heights of a target that its situation, the local limits and its own fence allow. */
export async function admitFlight(
  vehicle: Bounded,
  flight: Flight,
  context: CommandContext,
): Promise<Admitted> {
  // Looking at the fence takes a while.
  const begun = begunNow(context);
  const check = (now: Situation): Omit<Admitted, 'situation' | 'to'> | string => checkWay(flight, now);
  const { to, situation, checked } = await admit(vehicle, begun, check);
  const way = {
    from: situation.position,
    to: checked.target,
    ...(flight.radius_m === undefined ? {} : { radius_m: flight.radius_m }),
    ...(situation.kind === 'rover' ? {} : { above_home_m: checked.height.above_home_m }),
  };
  const against = await vehicle.againstFence?.(way, context);
  if (against !== undefined) throw notSent(texts.about(to.name, against));
  const now = await admit(vehicle, begun, check);
  return { to: now.to, situation: now.situation, ...now.checked };
}

function checkWay(
  { targetOf, options, admit: limit }: Flight,
  situation: Situation,
): Omit<Admitted, 'situation' | 'to'> | string {
  const target = targetOf(situation);
  if (!target) return texts.position_missing;
  const height = admitTarget(target, situation, options);
  if (typeof height === 'string') return height;
  return limit?.(situation, height) ?? { target, height };
}

/** A task is in time if it begins in time: it is not older later. */
export function begunNow(context: CommandContext): CommandContext {
  const age_ms = context.age_ms?.() ?? null;
  return { ...context, age_ms: () => age_ms };
}

export function notSent(reason: string): CommandRefused {
  return new CommandRefused(texts.not_sent(reason));
}
