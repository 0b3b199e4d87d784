/**
 * Chooses the epoch of a start so that it is higher than every epoch before: `(epoch, seq)` orders the values of a kit,
 * and receivers drop what they have seen before by it.
 */
import type { StoreClock } from '../store/ages.ts';
import type { EpochMemory } from './memory.ts';
import { epochs_end } from '../store/row-shapes.ts';

const first_hour_ms = Date.UTC(2026, 0, 1);
const hour_ms = 3_600_000;
/** A new file without a clock: below the hours since 2026 of any kit, so that the first epoch with a clock is above it. */
const clockless_max = 4_096;
/** More starts than a kit ever makes without leaving a row behind. */
const unsure_step = 1_000;
/** A daemon that ends at once is started again every few seconds. A day of these intervals uses 4 % of all epochs. */
const restart_interval_ms = 2_000;
const restarts_for_ms = 86_400_000;
/** After that day; the longest wait of a start. After three months without a disk a quarter of all epochs is used up; it grows no further. */
const unsure_interval_ms = 30_000;
const unsure_intervals_max = 2 ** 18;
/** How far one acknowledgement, or the clock, may push the epoch: beyond that it is an error or an attack. */
const leap_max = 2 ** 17;

/**
 * The least epoch of a start. A kit that starts less than once an hour on average stays behind that, so a kit that was
 * reinstalled, or got an old copy of its state back, begins above all epochs before, and 2^20 epochs last for a century.
 * 0 when the clock is not set.
 */
export function hoursSince2026(now_ms: number): number {
  return Math.max(0, Math.floor((now_ms - first_hour_ms) / hour_ms));
}

export class EpochChoice {
  readonly #memory: EpochMemory;
  readonly #clock: StoreClock;
  #wait_ms = 0;

  constructor(memory: EpochMemory, clock: StoreClock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** For a file that can be written and names its `last` epoch; undefined: it is new. */
  next(last: number | undefined): number {
    const seen = Math.max(last ?? 0, this.#memory.last);
    if (seen === 0) return this.#hours() || 1 + Math.floor(Math.random() * clockless_max);
    return Math.max(seen + 1, this.#hoursAfter(seen));
  }

  /**
   * Time during which nothing of the epoch that `unsure` chose last may be published. A start that chooses the same epoch comes
   * before the end of it, and finds that this process has ended without using it.
   */
  get wait_ms(): number {
    return this.#wait_ms;
  }

  /** For a file that cannot be read or written, of which `seen` is known, and for a copy of another machine's file. */
  unsure(seen: number): number {
    this.#wait_ms = 0;
    const { onDisk, ofBoot } = this.#memory;
    const above = Math.max(seen, onDisk, ofBoot, this.#hours());
    if (ofBoot > 0 || (onDisk > 0 && this.#memory.keep(above + 1))) return above + 1;
    const intervals = this.#intervals();
    if (intervals !== undefined) return above + unsure_step + intervals;
    return above + 1 + Math.floor(Math.random() * (unsure_step - 1));
  }

  /** For a file that was copied from another machine, which continues to begin epochs too. */
  apart(last: number): number {
    const above = Math.max(last, this.#memory.last, this.#hours());
    return above + Math.floor(unsure_step * (0.1 + Math.random() * 0.4));
  }

  /** In a running process: at least `min`, unless that exceeds `leap_max`. */
  rollOver(current: number, min: number): number {
    const above = Math.max(current, this.#memory.last);
    const wanted = Number.isSafeInteger(min) && min <= Math.min(above + leap_max, epochs_end - 1) ? min : 0;
    return Math.max(above + 1, wanted, this.#hoursAfter(above));
  }

  /**
   * The number of the next interval: it grows while nothing can be kept, so that a later start is above an earlier one. Undefined
   * without a clock.
   */
  #intervals(): number | undefined {
    const now_ms = this.#clock.wall();
    const passed_ms = now_ms - (this.#memory.writtenMs() ?? now_ms);
    if (passed_ms <= 0) return undefined;
    const of_first_day = restarts_for_ms / restart_interval_ms;
    if (passed_ms < restarts_for_ms) return this.#after(passed_ms, restart_interval_ms);
    const later_ms = passed_ms - restarts_for_ms;
    if (later_ms >= unsure_intervals_max * unsure_interval_ms) return of_first_day + unsure_intervals_max;
    return of_first_day + this.#after(later_ms, unsure_interval_ms);
  }

  /** The interval that begins next, which this start waits for. */
  #after(passed_ms: number, interval_ms: number): number {
    const next = Math.floor(passed_ms / interval_ms) + 1;
    this.#wait_ms = next * interval_ms - passed_ms;
    return next;
  }

  #hours(): number {
    return hoursSince2026(this.#clock.wall());
  }

  /** 0 when the clock is years ahead: it may be wrong, and no epoch below would be used any more. */
  #hoursAfter(seen: number): number {
    const hours = this.#hours();
    return hours <= seen + leap_max ? hours : 0;
  }
}
