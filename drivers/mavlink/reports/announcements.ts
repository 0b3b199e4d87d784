/** Limits how often assets are announced: strangers must neither fill the uplink nor hold up the event loop with them. */

interface Limit {
  readonly count: number;
  readonly window_ms: number;
}

/** Of an asset that describes itself otherwise with each message. */
export const changes_max: Limit = { count: 6, window_ms: 60_000 };
/** Of new vehicles: one takes some milliseconds, and those of a flood become known in the same turn. */
export const appearing_max: Limit = { count: 4, window_ms: 100 };
/** Of new components of all vehicles. A component that has to wait is announced after its next heartbeat. */
export const parts_appearing_max: Limit = { count: 16, window_ms: 100 };

export class Announcements {
  readonly #limit: Limit;
  #began_ms = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  /** Whether one more may be sent now. `now_ms` is monotonic. */
  take(now_ms: number): boolean {
    if (now_ms - this.#began_ms >= this.#limit.window_ms) {
      this.#began_ms = now_ms;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#limit.count;
  }
}
