/**
 * When messages that the broker has and the cloud has not confirmed are sent again: after a minute, then ever more rarely as
 * long as that does not help, and at once when the cloud acknowledges again after a silence.
 */
const first_ms = 60_000;
const max_ms = 1_800_000;
/** Without an acknowledgement for so long the cloud counts as away. */
const silence_ms = 60_000;

/** What is to be sent again. */
export interface Due {
  readonly older_than_ms: number;
  /**
   * Also of lazy lanes, which may be a whole backlog: while the cloud is away, a second copy would only lie at the broker beside the
   * first. Then one row asks whether the cloud is back, and its acknowledgement brings the others.
   */
  readonly lazy: boolean;
}

export class Resending {
  readonly #now: () => number;
  #interval_ms = first_ms;
  #last_ms: number;
  #acked_ms: number;
  /** Something was released since the last time. */
  #helped = false;

  constructor(now: () => number) {
    this.#now = now;
    this.#last_ms = now();
    this.#acked_ms = now();
  }

  /** Messages unconfirmed for longer than this are to be sent again, now; undefined: not yet. */
  begin(): Due | undefined {
    if (this.#now() - this.#last_ms < this.#interval_ms / 2) return undefined;
    this.#last_ms = this.#now();
    return { older_than_ms: this.#interval_ms, lazy: this.#now() - this.#acked_ms < silence_ms };
  }

  /** So many are sent again. */
  resent(rows: number): void {
    if (rows > 0) this.#interval_ms = Math.min(this.#interval_ms * 2, max_ms);
    else if (this.#helped) this.#interval_ms = Math.max(this.#interval_ms / 2, first_ms);
    this.#helped = false;
  }

  /** The cloud acknowledged something; `released`: messages of which it was not known. */
  acked(released: number): void {
    const now_ms = this.#now();
    const was_silent = now_ms - this.#acked_ms >= silence_ms;
    this.#acked_ms = now_ms;
    if (released > 0) this.#helped = true;
    if (released === 0 || !was_silent || this.#interval_ms === first_ms) return;
    this.#interval_ms = first_ms;
    this.#last_ms = Number.NEGATIVE_INFINITY;
  }
}
