/** Notices that something happens often: keeps no more times than it needs, however fast they come. */
export class Burst {
  readonly #count: number;
  readonly #window_ms: number;
  /** Oldest first. */
  readonly #at_ms: number[] = [];

  /** A burst is `count` times within the window. */
  constructor(count: number, window_ms: number) {
    this.#count = count;
    this.#window_ms = window_ms;
  }

  /** Notes one time; returns whether it ends a burst. `now_ms` is monotonic. */
  note(now_ms: number): boolean {
    this.#at_ms.push(now_ms);
    if (this.#at_ms.length > this.#count) this.#at_ms.shift();
    const [first = now_ms] = this.#at_ms;
    return this.#at_ms.length === this.#count && now_ms - first < this.#window_ms;
  }
}
