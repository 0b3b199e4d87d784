/** A seeded source of random numbers: the same seed gives the same numbers on every machine. */

export class Rng {
  readonly #seed: string;
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(seed: string) {
    this.#seed = seed;
    const next = hashOf(seed);
    this.#a = next();
    this.#b = next();
    this.#c = next();
    for (let i = 0; i < 12; i++) this.next();
  }

  /** A source of its own, which does not change with what others draw. */
  fork(label: string): Rng {
    return new Rng(`${this.#seed}/${label}`);
  }

  /** From 0 up to, and without, 1 (the generator sfc32). */
  next(): number {
    const sum = (this.#a + this.#b + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return (sum >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Both ends included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** Each order of magnitude between the two is as likely as the next. */
  scale(low: number, high: number): number {
    return low * (high / low) ** this.next();
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.next() * from.length)];
    if (picked === undefined) throw new RangeError('nothing to pick from');
    return picked;
  }

  /** A UUID that looks like one of version 4. */
  uuid(): `${string}-${string}-${string}-${string}-${string}` {
    const hex = (digits: number): string =>
      Array.from({ length: digits }, () => this.int(0, 15).toString(16)).join('');
    return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
  }
}

/** Draws 32-bit numbers from a text (the hash xmur3). */
function hashOf(text: string): () => number {
  let h = 1779033703 ^ text.length;
  for (const char of text) {
    h = Math.imul(h ^ (char.codePointAt(0) ?? 0), 3432918353);
    h = (h << 13) | (h >>> 19);
  }
  return () => {
    h = Math.imul(h ^ (h >>> 16), 2246822507);
    h = Math.imul(h ^ (h >>> 13), 3266489909);
    h ^= h >>> 16;
    return h >>> 0;
  };
}
