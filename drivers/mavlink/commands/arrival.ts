/** Waits until a vehicle has arrived where it was sent, with progress; ends when it leaves its way. */
import { type CommandContext, command_timeout_default_ms } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Contact } from '../vehicles/contact.ts';
import { modeNumbers, px4_takeoff_mode } from '../vehicles/modes.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { Height } from './altitude.ts';
import { report_reserve_ms, interruptionOf } from './exchange.ts';
import { distance_m, type Place } from '../vehicles/geo.ts';
import { modeOf } from './orders.ts';
import { isTargetShown } from './target-shown.ts';
import { texts } from './texts.ts';
import { type Addressee, silent_ms } from '../vehicles/addressee.ts';

/** A way of a vehicle, as its messages show it. */
export interface Journey {
  readonly what: string;
  /** Metres that are left; undefined while unknown. */
  readonly left_m: (contact: Contact, since_ms: number) => number | undefined;
  /** It has arrived within this distance. */
  readonly tolerance_m: number;
  /** Whether it is only passing: another station has sent it on. */
  readonly isPassing?: (contact: Contact, since_ms: number) => boolean;
  /** `custom_mode` of the modes in which it is on its way. */
  readonly modes: readonly (number | undefined)[];
}

const arrival_tolerance_m = 3;
/** Planes circle around their target. */
const circle_tolerance_m = 120;
const height_tolerance_m = 1.5;
const position_fresh_ms = 3_000;
/** On its way a vehicle is at least this fast; a copter against the wind may be as slow. */
const speed_min_mps = 2;
/** A vehicle that reports another target, around an obstacle, has arrived when it rests. */
const rest_cmps = 100;

/** Time for the longest way that is allowed, where the dispatch names no deadline. */
export function arrivalTimeout_ms({ distance_max_m }: MavlinkOptions['goto']): number {
  return command_timeout_default_ms + (1_000 * distance_max_m) / speed_min_mps;
}

/** The way to a place. Rovers have no height. */
export function journeyTo(target: Place, height: Height, { autopilot, kind }: Situation): Journey {
  const amsl_m = kind === 'rover' ? undefined : height.amsl_m;
  return {
    what: 'goto_waypoint',
    tolerance_m: kind === 'plane' || kind === 'vtol' ? circle_tolerance_m : arrival_tolerance_m,
    modes: [modeNumbers(autopilot, kind, 'GUIDED')?.custom_mode],
    isPassing: (contact, since_ms) => {
      const at = contact.latest.since('GLOBAL_POSITION_INT', since_ms);
      const isMoving = at !== undefined && Math.hypot(at.vx, at.vy) > rest_cmps;
      return isMoving && !isTargetShown(contact, target, height, since_ms);
    },
    left_m: (contact, since_ms) => {
      const at = contact.latest.since('GLOBAL_POSITION_INT', since_ms);
      if (!at) return undefined;
      const across_m = distance_m({ lat: at.lat / 1e7, lon: at.lon / 1e7 }, target);
      return amsl_m === undefined ? across_m : Math.hypot(across_m, at.alt / 1_000 - amsl_m);
    },
  };
}

/** The way up of a takeoff. PX4 holds when it is there. */
export function journeyUp(height: Height, { autopilot, kind }: Situation): Journey {
  return {
    what: 'takeoff',
    tolerance_m: height_tolerance_m,
    modes:
      autopilot === 'px4'
        ? [px4_takeoff_mode, modeNumbers(autopilot, kind, 'LOITER')?.custom_mode]
        : [modeNumbers(autopilot, kind, 'GUIDED')?.custom_mode],
    left_m: ({ latest }, since_ms) => {
      const at = latest.since('GLOBAL_POSITION_INT', since_ms);
      return at && Math.max(0, height.amsl_m - at.alt / 1_000);
    },
  };
}

/** Resolves on arrival. Throws `CommandRefused` when the vehicle leaves its way, is lost, or the time is over. */
export async function awaitArrival(to: Addressee, journey: Journey, context: CommandContext): Promise<void> {
  const { name } = to;
  const interruption = interruptionOf(to, journey.what);
  const from_ms = performance.now();
  let first_m: number | undefined;
  const left = (): number | undefined => journey.left_m(to.contact, performance.now() - position_fresh_ms);
  const rounded = (): number | undefined => {
    const metres = left();
    return metres === undefined ? undefined : Math.round(metres);
  };
  const look = (): 'arrived' | { readonly lost: string } | undefined => {
    const { contact } = to;
    const lost = interruption();
    if (lost !== undefined) return { lost };
    const silence_ms = silenceSince(contact.last_ms);
    if (silence_ms > silent_ms)
      return { lost: texts.link_lost(name, journey.what, (silence_ms / 1_000).toFixed(1)) };
    const heartbeat = contact.latest.since('HEARTBEAT', from_ms);
    if (heartbeat && !journey.modes.includes(heartbeat.custom_mode))
      return { lost: texts.abandoned(name, modeOf(contact) ?? 'unknown') };
    const metres = left();
    if (metres === undefined) return undefined;
    first_m ??= metres;
    const isPassing = journey.isPassing?.(contact, performance.now() - position_fresh_ms) === true;
    if (metres <= journey.tolerance_m && !isPassing) return 'arrived';
    const pct = first_m > 0 ? Math.min(99, Math.max(0, Math.round(100 * (1 - metres / first_m)))) : 0;
    context.progress(texts.left(name, Math.round(metres)), pct);
    return undefined;
  };
  const within_ms = Math.max(0, context.remaining_ms() - report_reserve_ms);
  const seen = await to.changes.until(look, within_ms, context.signal);
  if (seen === 'arrived') return;
  if (seen) throw new CommandRefused(texts.unknown_outcome(seen.lost));
  const metres = texts.metres_left(rounded());
  throw new CommandRefused(
    context.signal.aborted ? texts.arrival_stopped(name, metres) : texts.not_arrived(name, metres),
  );
}
