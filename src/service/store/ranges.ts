/** Sets of sequence numbers as sorted ranges, both ends included. */

export type Range = readonly [first: number, last: number];

/** Ranges of one epoch; a kit that leaves more holes than this is not counted exactly any more. */
export const ranges_max = 10_000;

/**
 * Adds numbers to sorted, separate ranges. `added` counts those that were not in it before. When the result would have
 * more than `ranges_max` ranges the lowest ones are joined: what lies between them counts as seen.
 */
export function addToRanges(
  ranges: readonly Range[],
  numbers: readonly number[],
): { readonly ranges: readonly Range[]; readonly added: number } {
  const before = sizeOf(ranges);
  const fresh = [...new Set(numbers)].map((n): Range => [n, n]);
  const merged: [number, number][] = [];
  for (const [first, last] of [...ranges, ...fresh].sort((a, b) => a[0] - b[0])) {
    const top = merged.at(-1);
    if (top && first <= top[1] + 1) top[1] = Math.max(top[1], last);
    else merged.push([first, last]);
  }
  const added = sizeOf(merged) - before;
  const excess = merged.length - ranges_max;
  if (excess <= 0) return { ranges: merged, added };
  const joined: Range = [merged[0]?.[0] ?? 0, merged[excess]?.[1] ?? 0];
  return { ranges: [joined, ...merged.slice(excess + 1)], added };
}

/** How many numbers the ranges hold. */
export function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** How many numbers lie between the ranges. */
export function holesIn(ranges: readonly Range[]): number {
  const first = ranges[0]?.[0] ?? 0;
  const last = ranges.at(-1)?.[1] ?? first - 1;
  return last - first + 1 - sizeOf(ranges);
}
