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

  /** Takes the bytes if the budget has them. `now_ms` is monotonic. */
  take(bytes: number, now_ms: number): boolean {
    const grown = ((now_ms - (this.#at_ms ?? now_ms)) / 1_000) * this.#bytes_per_s;
    this.#left = Math.min(this.#bytes_per_s * burst_s, this.#left + grown);
    this.#at_ms = now_ms;
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}
