/**
 * The `down/ack` messages on their way to the store. They are taken in at any pace without waiting for the disk: what came
 * while one was being applied is joined, and goes next.
 */
import type { Stored } from './in-flight.ts';

type Range = readonly [lo: number, hi: number];

/** Epochs with ranges that wait; the lowest are forgotten. The cloud names again what the kit sends again. */
const epochs_max = 16;
/** Ranges of one epoch that wait; the lowest are forgotten. */
const ranges_max = 10_000;

interface CloudAcksOptions {
  /** Resolves once everything that was acknowledged so far is in the store: it releases only what the broker has. */
  readonly settled: () => Promise<void>;
  readonly apply: (stored: Stored) => Promise<void>;
  readonly failed: (error: unknown) => void;
}

export class CloudAcks {
  readonly #options: CloudAcksOptions;
  readonly #waiting = new Map<number, readonly Range[]>();
  #is_busy = false;

  constructor(options: CloudAcksOptions) {
    this.#options = options;
  }

  /** Never waits. */
  add({ epoch, ranges }: Stored): void {
    const known = this.#waiting.get(epoch) ?? [];
    this.#waiting.set(epoch, joined([...known, ...ranges]).slice(-ranges_max));
    if (this.#waiting.size > epochs_max) this.#waiting.delete(Math.min(...this.#waiting.keys()));
    void this.retry();
  }

  /** Applies pending acknowledgements; to be repeated after a failed disk write. */
  async retry(): Promise<void> {
    if (this.#is_busy) return;
    this.#is_busy = true;
    try {
      for (let epoch = this.#next(); epoch !== undefined; epoch = this.#next()) {
        await this.#options.settled();
        const ranges = this.#waiting.get(epoch) ?? [];
        this.#waiting.delete(epoch);
        await this.#applied({ epoch, ranges });
      }
    } catch (error) {
      this.#options.failed(error);
    } finally {
      this.#is_busy = false;
    }
  }

  #next(): number | undefined {
    const [epoch] = this.#waiting.keys();
    return epoch;
  }

  async #applied(stored: Stored): Promise<void> {
    try {
      await this.#options.apply(stored);
    } catch (error) {
      const since = this.#waiting.get(stored.epoch) ?? [];
      this.#waiting.set(stored.epoch, joined([...stored.ranges, ...since]).slice(-ranges_max));
      throw error;
    }
  }
}

/** Sorted, with adjacent ranges merged. */
function joined(ranges: readonly Range[]): readonly Range[] {
  const out: [number, number][] = [];
  for (const [lo, hi] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = out.at(-1);
    if (last && lo <= last[1] + 1) last[1] = Math.max(last[1], hi);
    else out.push([lo, hi]);
  }
  return out;
}
