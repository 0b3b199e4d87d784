/** The clock of an autopilot since its start: a restart sets it back. Only some of its messages have it, and no HEARTBEAT. */
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Decoded } from '../wire/messages.ts';
import { Burst } from './own-heartbeats.ts';

/** A clock that goes back by more than reordered packets explain is a restart. */
const reboot_back_ms = 2_000;
/** Start times of one autopilot differ by the delays of its messages and links. */
const same_start_ms = 2_000;
/** `time_boot_ms` has 32 bits: it starts again at 0 after 49.7 days. */
const clock_range_ms = 2 ** 32;
const wrap_tolerance_ms = 10_000;
/** A vehicle that has sent no clock for this long sends none, or too rarely to wait for it. */
const running_max_ms = 5_000;
/** A clock that gains this much on ours with each of several messages does not count milliseconds. */
const gain_ms = 5_000;
const gains_max = 3;
/** Two starts that are reported by turns: farther apart than a slow second radio of one vehicle delays its messages. */
const two_starts_ms = 10_000;
const turns_of_two = 3;
const turns_window_ms = 15_000;

/** On our clock, and on that of the autopilot. */
interface Start {
  readonly booted_at_ms: number;
  readonly uptime_ms: number;
}

/** The clock in one kind of message: an autopilot may count microseconds in one and milliseconds in the others. */
interface Line extends Start {
  readonly at_ms: number;
  /** Messages in a row whose clock has gained on ours. */
  readonly gains: number;
}

export class BootClock {
  readonly #lines = new Map<Decoded['name'], Line>();
  /** Start of the autopilot on our clock. */
  #start_ms: number | undefined;
  /** Two messages agree on it. */
  #isConfirmed = false;
  /** The other start that was reported. */
  #before_ms: number | undefined;
  /** The start that a clock which gained on ours showed last. */
  #gained_ms: number | undefined;
  #heard_ms = Number.NEGATIVE_INFINITY;
  #messages = 0;
  /** Number of the newest message with the clock. */
  #newest = 0;
  #restarted_ms = Number.NEGATIVE_INFINITY;
  readonly #turns = new Burst(turns_of_two, turns_window_ms);
  #twofold_ms = Number.NEGATIVE_INFINITY;

  /** Start of the autopilot on our clock; undefined until it is reported. */
  get booted_at_ms(): number | undefined {
    return this.#start_ms;
  }

  /** Whether one of its messages counts microseconds, as those of iNav and Betaflight do. */
  get countsMicroseconds(): boolean {
    return [...this.#lines.values()].some((line) => !isClock(line));
  }

  /** Number of messages so far. */
  get messages(): number {
    return this.#messages;
  }

  /** When two clocks were last seen to go on by turns. */
  get twofold_ms(): number {
    return this.#twofold_ms;
  }

  /** Whether messages with the clock are received, so that a restart would show. `silence_max_ms`: the longest time without one. */
  isRunning(silence_max_ms = running_max_ms): boolean {
    return silenceSince(this.#heard_ms) < silence_max_ms;
  }

  /** Whether the message of this number or a later one had the clock. */
  wasHeardSince(message: number): boolean {
    return this.#newest >= message;
  }

  /** Whether another clock is of the same start; undefined if no message that both have shows it. */
  hasSameStart(other: BootClock): boolean | undefined {
    let same: boolean | undefined;
    for (const [name, line] of this.#lines) {
      const there = other.#lines.get(name);
      if (!there || !isClock(line) || !isClock(there)) continue;
      const apart_ms = Math.abs(line.booted_at_ms - there.booted_at_ms);
      // While the 32 bits of the clock start again, one link may still report the earlier count.
      same = Math.min(apart_ms, Math.abs(apart_ms - clock_range_ms)) <= same_start_ms;
      if (same) return true;
    }
    return same;
  }

  /** Processes each message. Returns whether it shows a restart. */
  receive(message: Decoded, now_ms: number): boolean {
    this.#messages += 1;
    const uptime_ms = timeSinceBoot(message);
    if (uptime_ms === undefined) return false;
    const booted_at_ms = now_ms - uptime_ms;
    const before = this.#lines.get(message.name) ?? this.#known(now_ms);
    const gains = gainsOf(before, booted_at_ms);
    this.#lines.set(message.name, { booted_at_ms, uptime_ms, at_ms: now_ms, gains });
    if (before && !isClock(before)) return false;
    this.#heard_ms = now_ms;
    this.#newest = this.#messages;
    const start = { booted_at_ms, uptime_ms };
    return before
      ? this.#compare(before, start, { now_ms, hasGained: gains > 0 })
      : this.#begin(booted_at_ms);
  }

  /** The first clock of all, or of its kind before two agree: it is compared with nothing. */
  #begin(booted_at_ms: number): false {
    if (this.#start_ms === undefined) this.#start_ms = booted_at_ms;
    else this.#isConfirmed ||= isNear(booted_at_ms, this.#start_ms);
    return false;
  }

  /** Whether a clock shows a restart that is not known. */
  #compare(
    before: Line,
    now: Start,
    { now_ms, hasGained }: { readonly now_ms: number; readonly hasGained: boolean },
  ): boolean {
    const { booted_at_ms } = now;
    const isNew = !isNear(booted_at_ms, this.#start_ms) && !isNear(booted_at_ms, this.#before_ms);
    // A clock that counts microseconds shows no start twice, a second vehicle does.
    if (isNew && hasGained && !isNear(booted_at_ms, this.#gained_ms)) {
      this.#gained_ms = booted_at_ms;
      return false;
    }
    // Each kind of message goes back once for the same restart.
    const has_restarted = isNew && before.at_ms >= this.#restarted_ms && isBack(before, now);
    this.#note(booted_at_ms, now_ms);
    if (has_restarted) this.#restarted_ms = now_ms;
    return has_restarted;
  }

  /** What a message that was not received before would have shown last: nothing before two agree on the start. */
  #known(now_ms: number): Line | undefined {
    const booted_at_ms = this.#isConfirmed ? this.#start_ms : undefined;
    if (booted_at_ms === undefined) return undefined;
    return { booted_at_ms, uptime_ms: now_ms - booted_at_ms, at_ms: now_ms, gains: 0 };
  }

  /** Notes a start. No autopilot returns to one from before its restart, except in a message that comes late. */
  #note(booted_at_ms: number, now_ms: number): void {
    const start_ms = this.#start_ms;
    this.#start_ms = booted_at_ms;
    this.#isConfirmed = isNear(booted_at_ms, start_ms);
    if (start_ms === undefined || this.#isConfirmed) return;
    const hasReturned = isNear(booted_at_ms, this.#before_ms);
    this.#before_ms = start_ms;
    const areFar = Math.abs(booted_at_ms - start_ms) > two_starts_ms;
    if (hasReturned && areFar && this.#turns.note(now_ms)) this.#twofold_ms = now_ms;
  }
}

/** Whether the clock went back, and not only because its 32 bits start again. */
function isBack(before: Start, { booted_at_ms, uptime_ms }: Start): boolean {
  const later_ms = booted_at_ms - before.booted_at_ms;
  const has_wrapped = Math.abs(later_ms - clock_range_ms) < wrap_tolerance_ms;
  return later_ms > reboot_back_ms && uptime_ms < before.uptime_ms && !has_wrapped;
}

function isNear(a_ms: number, b_ms: number | undefined): boolean {
  return b_ms !== undefined && Math.abs(a_ms - b_ms) <= same_start_ms;
}

/** iNav and Betaflight count microseconds in GLOBAL_POSITION_INT: that is no clock in milliseconds, whatever it does. */
function isClock({ gains }: Line): boolean {
  return gains < gains_max;
}

function gainsOf(line: Line | undefined, booted_at_ms: number): number {
  if (!line) return 0;
  if (!isClock(line)) return line.gains;
  return booted_at_ms - line.booted_at_ms < -gain_ms ? line.gains + 1 : 0;
}

/** Returns milliseconds since the autopilot booted; undefined for messages without that clock. */
function timeSinceBoot({ name, fields }: Decoded): number | undefined {
  if (name === 'HIGH_LATENCY2') return fields.timestamp;
  const is_clocked = name === 'GLOBAL_POSITION_INT' || name === 'ATTITUDE' || name === 'SYSTEM_TIME';
  return is_clocked ? fields.time_boot_ms : undefined;
}
