/** Token buckets: limit how often something happens over time, and allow some of it at once. Times are monotonic. */

export interface Rate {
  readonly perSecond: number;
  /** Tokens of a full bucket. */
  readonly burst: number;
}

export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #at_ms: number | undefined;

  /** A new bucket is full. */
  constructor(rate: Rate) {
    this.#rate = rate;
    this.#tokens = rate.burst;
  }

  /** Takes the tokens if there are so many; returns whether there were. */
  take(now_ms: number, count = 1): boolean {
    this.#fill(now_ms);
    if (this.#tokens < count) return false;
    this.#tokens -= count;
    return true;
  }

  /** How long it takes until there are so many tokens; 0: they are there. Never ends for more than the burst. */
  wait_ms(now_ms: number, count = 1): number {
    this.#fill(now_ms);
    if (count > this.#rate.burst) return Infinity;
    return Math.max(0, ((count - this.#tokens) / this.#rate.perSecond) * 1_000);
  }

  #fill(now_ms: number): void {
    const { perSecond, burst } = this.#rate;
    const passed_s = Math.max(0, now_ms - (this.#at_ms ?? now_ms)) / 1_000;
    this.#tokens = Math.min(burst, this.#tokens + passed_s * perSecond);
    this.#at_ms = Math.max(now_ms, this.#at_ms ?? now_ms);
  }
}

const keys_max_default = 10_000;

/** A bucket for each key. Beyond `keys_max` the one that was used least recently is forgotten, so that strangers fill no memory. */
export class KeyedTokenBuckets {
  readonly #rate: Rate;
  readonly #keys_max: number;
  readonly #byKey = new Map<string, TokenBucket>();

  constructor(rate: Rate, keys_max = keys_max_default) {
    this.#rate = rate;
    this.#keys_max = keys_max;
  }

  of(key: string): TokenBucket {
    const bucket = this.#byKey.get(key) ?? new TokenBucket(this.#rate);
    this.#byKey.delete(key);
    this.#byKey.set(key, bucket);
    if (this.#byKey.size > this.#keys_max) {
      const [oldest] = this.#byKey.keys();
      if (oldest !== undefined) this.#byKey.delete(oldest);
    }
    return bucket;
  }
}
