/** How fast the backlog drains, from what is on disk each second. Pure but for the clock that is passed in. */

/** Below this many messages a backlog is gone before a person has read of it. */
export const backlog_min = 500;
const window_ms = 30_000;
export const sample_every_ms = 1_000;
const log_every_ms = 60_000;

export interface DrainReport {
  /** The most messages that waited since the drain began. */
  readonly from: number;
  readonly left: number;
  /** Over the last half minute. */
  readonly per_s: number;
  /** Null while nothing leaves. */
  readonly left_s: number | null;
}

export interface DrainMeterOptions {
  readonly now_ms: () => number;
  /** Messages on disk. */
  readonly waiting: () => number;
  readonly isConnected: () => boolean;
  readonly log: { info(facts: object, sentence: string): void };
}

interface Sample {
  readonly at_ms: number;
  readonly left: number;
}

export class DrainMeter {
  readonly #options: DrainMeterOptions;
  /** At most `window_ms` of them, oldest first; empty while no backlog drains. */
  #samples: readonly Sample[] = [];
  #from = 0;
  #began_ms = 0;
  #logged_ms = 0;

  constructor(options: DrainMeterOptions) {
    this.#options = options;
  }

  /** To be called every `sample_every_ms`. */
  sample(): void {
    const { now_ms, waiting, isConnected, log } = this.#options;
    const [at_ms, left] = [now_ms(), waiting()];
    if (!isConnected()) {
      this.#samples = [];
      return;
    }
    const isDraining = this.#samples.length > 0;
    if (left < backlog_min) {
      this.#samples = [];
      if (isDraining)
        log.info({ messages: this.#from, took_s: (at_ms - this.#began_ms) / 1_000 }, 'backlog drained');
      return;
    }
    if (!isDraining) {
      this.#from = left;
      this.#began_ms = at_ms;
      this.#logged_ms = at_ms;
    }
    this.#from = Math.max(this.#from, left);
    this.#samples = [...this.#samples.filter((sample) => at_ms - sample.at_ms <= window_ms), { at_ms, left }];
    if (at_ms - this.#logged_ms < log_every_ms) return;
    this.#logged_ms = at_ms;
    log.info({ ...this.report() }, 'backlog draining');
  }

  /** Null while no backlog drains. */
  report(): DrainReport | null {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last) return null;
    const gone = first.left - last.left;
    const per_s = gone > 0 ? gone / ((last.at_ms - first.at_ms) / 1_000) : 0;
    const left_s = per_s > 0 ? last.left / per_s : null;
    return { from: this.#from, left: last.left, per_s, left_s };
  }
}
