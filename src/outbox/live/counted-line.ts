/** A log line that may be due very often: the first is written at once, what follows soon is counted and written as one. */
const pause_ms = 60_000;

export class CountedLine {
  readonly #write: (facts: object) => void;
  readonly #now: () => number;
  #quiet_until_ms = Number.NEGATIVE_INFINITY;
  #messages = 0;
  #last: object = {};

  constructor(write: (facts: object) => void, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  write(facts: object): void {
    if (this.#now() >= this.#quiet_until_ms) {
      this.#quiet_until_ms = this.#now() + pause_ms;
      this.#write({ ...facts, messages: this.#messages + 1 });
      this.#messages = 0;
      return;
    }
    this.#messages += 1;
    this.#last = facts;
  }

  /** Writes what was counted, once the pause is over. */
  tick(): void {
    if (this.#messages === 0 || this.#now() < this.#quiet_until_ms) return;
    this.#quiet_until_ms = this.#now() + pause_ms;
    this.#write({ ...this.#last, messages: this.#messages });
    this.#messages = 0;
  }
}
