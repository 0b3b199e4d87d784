/** Token buckets: how fast one asker may ask. */

export interface Rate {
  readonly per_s: number;
  readonly burst: number;
}

/** Askers that are remembered; the one not seen for longest is forgotten. */
const askers_max = 10_000;

interface Bucket {
  readonly tokens: number;
  readonly at_ms: number;
}

export class RateLimit {
  readonly #rate: Rate;
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Takes one token. Answers 0, or the seconds to wait. `now_ms` is monotonic. */
  take(asker: string, now_ms: number): number {
    const { per_s, burst } = this.#rate;
    const known = this.#buckets.get(asker);
    const grown = known ? known.tokens + ((now_ms - known.at_ms) / 1000) * per_s : burst;
    const tokens = Math.min(burst, grown);
    this.#buckets.delete(asker);
    const isFree = tokens >= 1;
    this.#buckets.set(asker, { tokens: isFree ? tokens - 1 : tokens, at_ms: now_ms });
    if (this.#buckets.size > askers_max) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return isFree ? 0 : Math.ceil((1 - tokens) / per_s);
  }
}
