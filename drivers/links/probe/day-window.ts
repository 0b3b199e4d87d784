/** The last 24 hours of one link in minutes: how long it was reachable, unreachable, or not looked at. Pure. */

/** Minutes of the window. */
export const window_minutes = 1_440;
export const minute_ms = 60_000;

/** Observed time. */
export interface Times {
  readonly up_ms: number;
  readonly down_ms: number;
}

/** So many minutes in a row with the same times: `[minutes, up_ms, down_ms]`. Most days are a handful of these. */
export type Run = [minutes: number, up_ms: number, down_ms: number];

/** Minutes are counted on any even scale, negative numbers too; adding to a later one moves the window on. */
export class DayWindow {
  readonly #up_ms = new Uint16Array(window_minutes);
  readonly #down_ms = new Uint16Array(window_minutes);
  #newest: number;

  constructor(minute: number) {
    this.#newest = minute;
  }

  /** Adds observed time to a minute; what is older than the window, or more than a minute holds, is left out. */
  add(minute: number, { up_ms, down_ms }: Times): void {
    this.moveTo(minute);
    if (minute <= this.#newest - window_minutes) return;
    const at = slot(minute);
    const room_ms = minute_ms - (this.#up_ms[at] ?? 0) - (this.#down_ms[at] ?? 0);
    const up_fits_ms = Math.min(up_ms, room_ms);
    this.#up_ms[at] = (this.#up_ms[at] ?? 0) + up_fits_ms;
    this.#down_ms[at] = (this.#down_ms[at] ?? 0) + Math.min(down_ms, room_ms - up_fits_ms);
  }

  /** Time that was added as the opposite: `up_ms` of it was up, `down_ms` of it was down. */
  correct(minute: number, { up_ms, down_ms }: Times): void {
    if (minute <= this.#newest - window_minutes || minute > this.#newest) return;
    const at = slot(minute);
    const [up_before_ms, down_before_ms] = [this.#up_ms[at] ?? 0, this.#down_ms[at] ?? 0];
    const moved_ms = Math.min(up_ms, down_before_ms) - Math.min(down_ms, up_before_ms);
    this.#up_ms[at] = up_before_ms + moved_ms;
    this.#down_ms[at] = down_before_ms - moved_ms;
  }

  /** The minute is the newest now; minutes that were skipped were not observed. */
  moveTo(minute: number): void {
    const skipped = Math.min(minute - this.#newest, window_minutes);
    for (let back = 0; back < skipped; back += 1) {
      this.#up_ms[slot(minute - back)] = 0;
      this.#down_ms[slot(minute - back)] = 0;
    }
    this.#newest = Math.max(this.#newest, minute);
  }

  /** Observed time of the whole window, milliseconds. */
  totals(): Times {
    return { up_ms: sum(this.#up_ms), down_ms: sum(this.#down_ms) };
  }

  /** All minutes, oldest first, the newest last. */
  runs(): Run[] {
    const runs: Run[] = [];
    for (let back = window_minutes - 1; back >= 0; back -= 1) {
      const at = slot(this.#newest - back);
      const [up_ms, down_ms] = [this.#up_ms[at] ?? 0, this.#down_ms[at] ?? 0];
      const last = runs.at(-1);
      if (last !== undefined && last[1] === up_ms && last[2] === down_ms) last[0] += 1;
      else runs.push([1, up_ms, down_ms]);
    }
    return runs;
  }

  /** Adds runs whose last minute is `newest`. */
  addRuns(runs: readonly Run[], newest: number): void {
    let minute = newest - runs.reduce((minutes, [count]) => minutes + count, 0);
    for (const [count, up_ms, down_ms] of runs) {
      for (let passed = 0; passed < count; passed += 1) {
        minute += 1;
        if (up_ms + down_ms > 0) this.add(minute, { up_ms, down_ms });
      }
    }
  }
}

function slot(minute: number): number {
  return ((minute % window_minutes) + window_minutes) % window_minutes;
}

function sum(values: Uint16Array): number {
  return values.reduce((total, value) => total + value, 0);
}
