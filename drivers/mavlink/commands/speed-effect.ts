/** Whether the speed that was set shows: no autopilot reports it, but a vehicle on its way changes to it. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Contact } from '../vehicles/contact.ts';
import type { Situation } from '../vehicles/situation.ts';
import { clock_wait_ms, report_reserve_ms, interruptionOf } from './exchange.ts';
import { isAirspeed } from './orders.ts';
import { texts } from './texts.ts';
import { type Addressee, isHeard } from '../vehicles/addressee.ts';

/** A vehicle that hovers, turns or is held back by the wind shows nothing, so that the wait is short. */
const observe_max_ms = 6_000;
/** The speed counts when it is kept this long: a vehicle that brakes only passes through it. */
const steady_ms = 2_000;
const speed_fresh_ms = 1_500;
const tolerance_min_mps = 0.4;
const tolerance_share = 0.1;
const what = 'set_speed';

/** `observed`: the vehicle changed to the speed and kept it. `not observable`: only its answer is known. */
export type SpeedEffect = 'not observable' | 'observed';

/**
 * Resolves once the vehicle has kept the speed for a while, or when the wait is over. It had another speed before. VFR_HUD has no clock:
 * the speed counts once a message with the clock of the same start follows. Throws `CommandRefused` when the vehicle may have
 * forgotten the speed: it restarted, it is lost, or it sends no clock any more that would show a restart.
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
  const watch = new Watch(to, context);
  let since_ms: number | undefined;
  let kept: { readonly clock: Contact['clock']; readonly at: number } | undefined;
  const isKept = (): boolean => {
    const now_ms = performance.now();
    if (!fits(speedOf(to.contact, situation))) {
      since_ms = undefined;
      kept = undefined;
      return false;
    }
    since_ms ??= now_ms;
    if (now_ms - since_ms < steady_ms) return false;
    const { clock } = to.contact;
    if (kept?.clock !== clock) kept = { clock, at: clock.messages };
    return !watch.hasClock || clock.wasHeardSince(kept.at);
  };
  if (await watch.until(isKept, observe_max_ms)) return 'observed';
  await watch.requireSameStart();
  return 'not observable';
}

/** The start of the autopilot that has accepted the speed: another one has forgotten it. */
class Watch {
  /** Whether its clock would show a restart. */
  readonly hasClock: boolean;
  readonly #to: Addressee;
  readonly #context: CommandContext;
  readonly #interruption: () => string | undefined;

  constructor(to: Addressee, context: CommandContext) {
    this.#to = to;
    this.#context = context;
    this.#interruption = interruptionOf(to, what);
    this.hasClock = to.contact.clock.isRunning();
  }

  /** Whether `look` found something in time. Throws `CommandRefused` when the vehicle restarted or cannot be told from another one. */
  async until(look: () => boolean, ms: number): Promise<boolean> {
    const left_ms = this.#context.remaining_ms() - report_reserve_ms;
    const seen = await this.#to.changes.until(
      () => (this.#interruption() === undefined ? look() || undefined : false),
      Math.max(0, Math.min(ms, left_ms)),
      this.#context.signal,
    );
    const interruption = this.#interruption();
    if (interruption !== undefined) throw unknown(interruption);
    return seen === true;
  }

  /** Throws `CommandRefused` when the vehicle is silent, or sends no clock any more: it may have restarted. */
  async requireSameStart(): Promise<void> {
    const { name } = this.#to;
    const hasClock = (): boolean => !this.hasClock || this.#to.contact.clock.isRunning(clock_wait_ms);
    const isSame = await this.until(() => isHeard(this.#to.contact) && hasClock(), clock_wait_ms);
    // A stopped task waits for nothing.
    if (isSame || this.#context.signal.aborted) return;
    const { contact } = this.#to;
    const silence_s = (silenceSince(contact.last_ms) / 1_000).toFixed(1);
    throw unknown(isHeard(contact) ? texts.clock_lost(name, what) : texts.link_lost(name, what, silence_s));
  }
}

function unknown(reason: string): CommandRefused {
  return new CommandRefused(texts.unknown_outcome(reason));
}

/** Returns the speed that the command sets: through the air for planes, over ground for others. */
export function speedOf({ latest }: Contact, situation: Situation): number | undefined {
  const hud = latest.fresh('VFR_HUD', speed_fresh_ms, performance.now());
  const speed = isAirspeed(situation) ? hud?.airspeed : hud?.groundspeed;
  return Number.isFinite(speed) ? speed : undefined;
}
