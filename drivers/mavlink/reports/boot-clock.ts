/** The clock of an autopilot since its start: a restart sets it back. Only some of its messages have it, and no HEARTBEAT. */
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Decoded } from '../wire/messages.ts';

/** A clock that goes back by more than reordered packets explain is a restart. */
const reboot_back_ms = 2_000;
/** `time_boot_ms` has 32 bits: it starts again at 0 after 49.7 days. */
const clock_range_ms = 2 ** 32;
const wrap_tolerance_ms = 10_000;
/** A vehicle that has sent no clock for this long sends none, or too rarely to wait for it. */
const running_max_ms = 5_000;

export class BootClock {
  #booted_at_ms: number | undefined;
  #uptime_ms = 0;
  #heard_ms = Number.NEGATIVE_INFINITY;
  #messages = 0;
  /** Number of the newest message with the clock. */
  #newest = 0;

  /** Start of the autopilot on our clock; undefined until it is reported. */
  get booted_at_ms(): number | undefined {
    return this.#booted_at_ms;
  }

  /** Number of messages so far. */
  get messages(): number {
    return this.#messages;
  }

  /** Whether messages with the clock are received, so that a restart would show. `silence_max_ms`: the longest time without one. */
  isRunning(silence_max_ms = running_max_ms): boolean {
    return silenceSince(this.#heard_ms) < silence_max_ms;
  }

  /** Whether the message of this number or a later one had the clock. */
  wasHeardSince(message: number): boolean {
    return this.#newest >= message;
  }

  /** Processes each message. Returns whether it shows a restart. */
  receive(message: Decoded, now_ms: number): boolean {
    this.#messages += 1;
    const boot_ms = timeSinceBoot(message);
    if (boot_ms === undefined) return false;
    const booted_at_ms = now_ms - boot_ms;
    const later_ms = this.#booted_at_ms === undefined ? 0 : booted_at_ms - this.#booted_at_ms;
    const has_wrapped = Math.abs(later_ms - clock_range_ms) < wrap_tolerance_ms;
    const has_restarted = later_ms > reboot_back_ms && boot_ms < this.#uptime_ms && !has_wrapped;
    this.#booted_at_ms = booted_at_ms;
    this.#uptime_ms = boot_ms;
    this.#heard_ms = now_ms;
    this.#newest = this.#messages;
    return has_restarted;
  }
}

/** Returns milliseconds since the autopilot booted; undefined for messages without that clock. */
function timeSinceBoot({ name, fields }: Decoded): number | undefined {
  if (name === 'HIGH_LATENCY2') return fields.timestamp;
  const is_clocked = name === 'GLOBAL_POSITION_INT' || name === 'ATTITUDE' || name === 'SYSTEM_TIME';
  return is_clocked ? fields.time_boot_ms : undefined;
}
