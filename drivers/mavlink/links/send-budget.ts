/** Limits what one link sends to vehicles: a token bucket, of which a part is reserved for commands. */

import { TokenBucket } from '../../../src/platform/token-bucket.ts';

/** Frames of a command have precedence over heartbeats, requests, transfers and forwarded frames. */
export type Precedence = 'command' | 'usual';

/** Unused budget that may be sent at once. */
const burst_s = 2;
/** A signed COMMAND_INT in both forms. */
const reserve_bytes = 120;
const shown_s = 10;

export class SendBudget {
  readonly bytes_per_s: number;
  readonly #reserve_bytes: number;
  readonly #bucket: TokenBucket;
  /** Bytes that were sent, by second. */
  readonly #sent = new Map<number, number>();

  constructor(bytes_per_s: number) {
    this.bytes_per_s = bytes_per_s;
    const burst = bytes_per_s * burst_s;
    this.#reserve_bytes = Math.min(reserve_bytes, burst / 2);
    this.#bucket = new TokenBucket({ perSecond: bytes_per_s, burst });
  }

  /** Whether a frame of this length may be sent. `now_ms` is monotonic. */
  has(bytes: number, precedence: Precedence, now_ms: number): boolean {
    const reserved = precedence === 'command' ? 0 : this.#reserve_bytes;
    return this.#bucket.wait_ms(now_ms, bytes + reserved) === 0;
  }

  /** Counts a frame that was sent. */
  spend(bytes: number, now_ms: number): void {
    this.#bucket.take(now_ms, bytes);
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
