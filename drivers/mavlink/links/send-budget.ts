/** Limits what one link sends to vehicles: a token bucket, of which a part is reserved for commands. */

/** Frames of a command have precedence over heartbeats, requests, transfers and forwarded frames. */
export type Precedence = 'command' | 'usual';

/** Unused budget that may be sent at once. */
const burst_s = 2;
/** A signed COMMAND_INT in both forms. */
const reserve_bytes = 120;
const shown_s = 10;

export class SendBudget {
  readonly bytes_per_s: number;
  readonly #capacity: number;
  #left: number;
  #at_ms: number | undefined;
  /** Bytes that were sent, by second. */
  readonly #sent = new Map<number, number>();

  constructor(bytes_per_s: number) {
    this.bytes_per_s = bytes_per_s;
    this.#capacity = bytes_per_s * burst_s;
    this.#left = this.#capacity;
  }

  /** Whether a frame of this length may be sent. `now_ms` is monotonic. */
  has(bytes: number, precedence: Precedence, now_ms: number): boolean {
    const grown = ((now_ms - (this.#at_ms ?? now_ms)) / 1_000) * this.bytes_per_s;
    this.#left = Math.min(this.#capacity, this.#left + grown);
    this.#at_ms = now_ms;
    const reserved = precedence === 'command' ? 0 : Math.min(reserve_bytes, this.#capacity / 2);
    return this.#left - reserved >= bytes;
  }

  /** Counts a frame that was sent. */
  spend(bytes: number, now_ms: number): void {
    this.#left -= bytes;
    const second = Math.floor(now_ms / 1_000);
    this.#sent.set(second, (this.#sent.get(second) ?? 0) + bytes);
    for (const each of this.#sent.keys()) if (each < second - shown_s) this.#sent.delete(each);
  }

  /** Returns the bytes per second of the last ten complete seconds. */
  rate(now_ms: number): number {
    const second = Math.floor(now_ms / 1_000);
    let sum = 0;
    for (const [each, bytes] of this.#sent) if (each < second && each >= second - shown_s) sum += bytes;
    return Math.round(sum / shown_s);
  }
}
