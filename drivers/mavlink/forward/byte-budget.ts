/** A token bucket for the bytes that stations send to vehicles. */

/** Unused budget that may be sent at once. */
const burst_s = 1;

export class ByteBudget {
  readonly #bytes_per_s: number;
  #left: number;
  #at_ms: number | undefined;

  constructor(bytes_per_s: number) {
    this.#bytes_per_s = bytes_per_s;
    this.#left = bytes_per_s * burst_s;
  }

  /** Whether the budget has the bytes. `now_ms` is monotonic. */
  has(bytes: number, now_ms: number): boolean {
    const grown = ((now_ms - (this.#at_ms ?? now_ms)) / 1_000) * this.#bytes_per_s;
    this.#left = Math.min(this.#bytes_per_s * burst_s, this.#left + grown);
    this.#at_ms = now_ms;
    return bytes <= this.#left;
  }

  /** Takes bytes that it has. */
  take(bytes: number): void {
    this.#left -= bytes;
  }
}
