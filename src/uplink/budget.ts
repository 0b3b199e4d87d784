/** A token bucket for the backlog's bytes on links that are paid for. */

/** Bytes that may go at once after a pause: what the rate gives in this time. */
const burst_ms = 2_000;

export class Budget {
  readonly #now: () => number;
  #tokens_bytes = 0;
  #filled_ms: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#filled_ms = now();
  }

  /** Whether a message may go at `kbps` (1,000 bits a second; 0: no limit). The last one may overdraw. */
  allows(kbps: number): boolean {
    if (kbps <= 0) return true;
    const now_ms = this.#now();
    const bytes_per_ms = kbps / 8;
    const filled = this.#tokens_bytes + (now_ms - this.#filled_ms) * bytes_per_ms;
    this.#tokens_bytes = Math.min(filled, burst_ms * bytes_per_ms);
    this.#filled_ms = now_ms;
    return this.#tokens_bytes > 0;
  }

  spend(bytes: number): void {
    this.#tokens_bytes -= bytes;
  }
}
