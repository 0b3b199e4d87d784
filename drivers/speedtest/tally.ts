/** Counts the bytes of one direction over all its connections and keeps to its limits. */
import { silenceSince } from '../../src/platform/stalls.ts';

export interface Limits {
  readonly bytes_max: number;
  readonly ms_max: number;
}

const bits_per_megabit_ms = 1_000;

export class Tally {
  readonly #limits: Limits;
  readonly #begin_ms = performance.now();
  #bytes = 0;
  #reserved = 0;
  /** What came with the first piece was under way before the clock of the rate began to run. */
  #first: { readonly at_ms: number; readonly bytes: number } | undefined;
  #last_ms = performance.now();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(bytes: number): void {
    this.#last_ms = performance.now();
    this.#bytes += bytes;
    this.#first ??= { at_ms: this.#last_ms, bytes };
  }

  /** Sets bytes aside that are about to be sent: `wanted` or what is left; 0 when the limits are reached. */
  reserve(wanted: number): number {
    const bytes = this.isSpent() ? 0 : Math.min(wanted, this.#limits.bytes_max - this.#reserved);
    this.#reserved += bytes;
    return bytes;
  }

  /** Time without a sign of life, milliseconds. */
  silence_ms(): number {
    return silenceSince(this.#last_ms);
  }

  /** Whether the data or the time are used up. */
  isSpent(): boolean {
    const { bytes_max, ms_max } = this.#limits;
    return this.#bytes >= bytes_max || performance.now() - this.#begin_ms >= ms_max;
  }

  /** 0 to 100, by whichever limit is nearer. */
  pct(): number {
    const { bytes_max, ms_max } = this.#limits;
    const share = Math.max(this.#bytes / bytes_max, (performance.now() - this.#begin_ms) / ms_max);
    return Math.min(100, Math.round(share * 100));
  }

  /** Megabits per second from the first sign of life to the last; null before there are two. */
  mbps(): number | null {
    if (!this.#first) return null;
    const [bytes, ms] = [this.#bytes - this.#first.bytes, this.#last_ms - this.#first.at_ms];
    if (bytes <= 0 || ms <= 0) return null;
    return Math.round(((bytes * 8) / ms / bits_per_megabit_ms) * 100) / 100;
  }
}
