/** Sets of sequence numbers as sorted, separate ranges, both ends included. */

export type Range = readonly [first: number, last: number];

/** The ranges of both, sorted, and joined where they overlap or touch. Numbers that are in neither are never included. */
export function joinRanges(...sets: readonly (readonly Range[])[]): readonly Range[] {
  const joined: [number, number][] = [];
  for (const [first, last] of sets.flat().sort((a, b) => a[0] - b[0])) {
    const top = joined.at(-1);
    if (top && first <= top[1] + 1) top[1] = Math.max(top[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** The ranges without the numbers from `from` to `to`. */
export function cutFromRanges(ranges: readonly Range[], [from, to]: Range): readonly Range[] {
  return ranges.flatMap(([first, last]): Range[] => {
    if (last < from || first > to) return [[first, last]];
    const left: Range[] = first < from ? [[first, from - 1]] : [];
    return last > to ? [...left, [to + 1, last]] : left;
  });
}

/** The range that holds this number. */
export function rangeAt(ranges: readonly Range[], seq: number): Range | undefined {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = ranges[middle];
    if (!range) return undefined;
    if (seq < range[0]) high = middle - 1;
    else if (seq > range[1]) low = middle + 1;
    else return range;
  }
  return undefined;
}

/** How many numbers the ranges hold. */
export function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}
