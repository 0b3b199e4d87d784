/** Token buckets that limit the request rate of each client. */

export interface Rate {
  readonly per_s: number;
  readonly burst: number;
}

/** Clients that are tracked; the least recently seen one is evicted. */
const clients_max = 10_000;

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

  /** Takes one token. Returns 0, or the seconds to wait. `now_ms` is monotonic. */
  take(client: string, now_ms: number): number {
    const { per_s, burst } = this.#rate;
    const known = this.#buckets.get(client);
    const grown = known ? known.tokens + ((now_ms - known.at_ms) / 1000) * per_s : burst;
    const tokens = Math.min(burst, grown);
    this.#buckets.delete(client);
    const isFree = tokens >= 1;
    this.#buckets.set(client, { tokens: isFree ? tokens - 1 : tokens, at_ms: now_ms });
    if (this.#buckets.size > clients_max) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return isFree ? 0 : Math.ceil((1 - tokens) / per_s);
  }
}
