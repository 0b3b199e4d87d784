/** Remembers what was seen recently, in bounded memory: a flood of new things displaces the older ones. Times are monotonic. */

interface Seen<V> {
  readonly value: V;
  readonly at_ms: number;
}

export class SeenRecently<K, V = true> {
  readonly #keep_ms: number;
  readonly #max: number;
  /** The latest ones, and those before them: to remove the oldest of one large map each time costs more than all else. */
  #current = new Map<K, Seen<V>>();
  #previous: ReadonlyMap<K, Seen<V>> = new Map();

  /** The latest `max` are remembered for `keep_ms`, and never more than twice as many. */
  constructor({ keep_ms, max }: { readonly keep_ms: number; readonly max: number }) {
    this.#keep_ms = keep_ms;
    this.#max = max;
  }

  /** Remembers it as seen now, again if it is known. */
  note(key: K, value: V, now_ms: number): void {
    if (this.#current.size >= this.#max && !this.#current.has(key)) {
      this.#previous = this.#current;
      this.#current = new Map();
    }
    this.#current.set(key, { value, at_ms: now_ms });
  }

  /** Returns what was noted with it; undefined if it was not seen recently. */
  get(key: K, now_ms: number): V | undefined {
    const seen = this.#current.get(key) ?? this.#previous.get(key);
    return seen && now_ms - seen.at_ms < this.#keep_ms ? seen.value : undefined;
  }

  has(key: K, now_ms: number): boolean {
    return this.get(key, now_ms) !== undefined;
  }
}
