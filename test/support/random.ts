/** Seeded pseudo-random values, so that a run can be repeated. */

export interface Random {
  /** A whole number from 0 up to, not including, `end`. */
  below(end: number): number;
  bytes(length: number): Buffer;
  of<T>(items: readonly T[]): T;
}

/** The mulberry32 generator. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return {
    below,
    bytes(length) {
      const bytes = Buffer.allocUnsafe(length);
      for (let at = 0; at < length; at += 1) bytes[at] = below(256);
      return bytes;
    },
    of(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError('nothing to choose from');
      return item;
    },
  };
}
