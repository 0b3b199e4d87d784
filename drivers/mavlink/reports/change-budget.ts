/** Limits how often an asset is announced again: a vehicle that describes itself otherwise with each message must not fill the uplink. */

const window_ms = 60_000;
const changes_max = 6;

export class ChangeBudget {
  #began_ms = Number.NEGATIVE_INFINITY;
  #changes = 0;

  /** Whether one more change may be announced now. `now_ms` is monotonic. */
  take(now_ms: number): boolean {
    if (now_ms - this.#began_ms >= window_ms) {
      this.#began_ms = now_ms;
      this.#changes = 0;
    }
    this.#changes += 1;
    return this.#changes <= changes_max;
  }
}
