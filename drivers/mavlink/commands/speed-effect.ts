/** Whether the speed that was set shows: no autopilot reports it, but a vehicle on its way changes to it. */
import type { CommandContext } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import type { Contact } from '../vehicles/contact.ts';
import type { Situation } from '../vehicles/situation.ts';
import { type Addressee, report_reserve_ms } from './exchange.ts';
import { isAirspeed } from './orders.ts';
import { texts } from './texts.ts';

/** A vehicle that hovers, turns or is held back by the wind shows nothing, so that the wait is short. */
const observe_max_ms = 6_000;
/** The speed counts when it is kept this long: a vehicle that brakes only passes through it. */
const steady_ms = 2_000;
const speed_fresh_ms = 1_500;
const tolerance_min_mps = 0.4;
const tolerance_share = 0.1;

/** `observed`: the vehicle changed to the speed and kept it. `not observable`: only its answer is known. */
export type SpeedEffect = 'not observable' | 'observed';

/**
 * Resolves once the vehicle has kept the speed for a while, or when the wait is over. It had another speed before. VFR_HUD has no clock:
 * the speed counts once a message with the clock of the same start follows. Throws `CommandRefused` when the vehicle restarts.
 */
export async function observeSpeed(
  to: Addressee,
  { speed_mps, before_mps }: { readonly speed_mps: number; readonly before_mps: number | undefined },
  { situation, context }: { readonly situation: Situation; readonly context: CommandContext },
): Promise<SpeedEffect> {
  const tolerance_mps = Math.max(tolerance_min_mps, speed_mps * tolerance_share);
  const fits = (mps: number | undefined): boolean =>
    mps !== undefined && Math.abs(mps - speed_mps) <= tolerance_mps;
  // A speed that it had already shows nothing.
  if (before_mps === undefined || fits(before_mps)) return 'not observable';
  const { clock, boots } = to.contact;
  const hasClock = clock.isRunning();
  let since_ms: number | undefined;
  let kept_at: number | undefined;
  const look = (): SpeedEffect | 'restarted' | undefined => {
    if (to.contact.boots !== boots) return 'restarted';
    const now_ms = performance.now();
    if (to.conflict() !== undefined || !fits(speedOf(to.contact, situation))) {
      since_ms = undefined;
      kept_at = undefined;
      return undefined;
    }
    since_ms ??= now_ms;
    if (now_ms - since_ms < steady_ms) return undefined;
    kept_at ??= clock.messages;
    return !hasClock || clock.wasHeardSince(kept_at) ? 'observed' : undefined;
  };
  const wait_ms = Math.max(0, Math.min(observe_max_ms, context.remaining_ms() - report_reserve_ms));
  const effect = await to.changes.until(look, wait_ms, context.signal);
  // It has forgotten the speed.
  if (effect === 'restarted')
    throw new CommandRefused(texts.unknown_outcome(texts.interrupted(to.name, 'set_speed')));
  return effect ?? 'not observable';
}

/** Returns the speed that the command sets: through the air for planes, over ground for others. */
export function speedOf({ latest }: Contact, situation: Situation): number | undefined {
  const hud = latest.fresh('VFR_HUD', speed_fresh_ms, performance.now());
  const speed = isAirspeed(situation) ? hud?.airspeed : hud?.groundspeed;
  return Number.isFinite(speed) ? speed : undefined;
}
