/** Drops added up by epoch, lane and reason. */
import type { Drop } from '../../protocol.ts';

/** By epoch, lane and reason. */
export type DropSums = Map<string, Drop>;

export function addDrop(sums: DropSums, drop: Drop): void {
  const key = `${drop.epoch} ${drop.lane} ${drop.reason}`;
  const known = sums.get(key);
  sums.set(key, known ? joined(known, drop) : drop);
}

function joined(known: Drop, drop: Drop): Drop {
  const [lo, hi] = [Math.min(known.lo, drop.lo), Math.max(known.hi, drop.hi)];
  return { ...known, rows: known.rows + drop.rows, lo, hi };
}
