/** Ranges of sequence numbers that the cloud acknowledged: sorted, without overlaps, limited to possible numbers. */
import { rowId, seq_max, type RowId } from './row.ts';

export type Range = readonly [lo: number, hi: number];

export class AckRanges {
  /** Ranges that name numbers which no message of the epoch has. */
  readonly impossible: number;
  /** Rising row ids; no two touch. */
  readonly #spans: readonly Range[];

  /** `last_seq`: the last number given out in this epoch, where it is known. */
  constructor(epoch: number, ranges: readonly Range[], last_seq = seq_max - 1) {
    const possible = ranges.filter(([lo, hi]) => isSeq(lo) && isSeq(hi) && lo <= hi && hi <= last_seq);
    this.impossible = ranges.length - possible.length;
    this.#spans = joined(
      possible.map(([lo, hi]) => [rowId({ epoch, seq: lo }), rowId({ epoch, seq: hi })] as const),
    );
  }

  has(id: RowId): boolean {
    let [low, high] = [0, this.#spans.length - 1];
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const [lo, hi] = this.#spans[middle] ?? [0, 0];
      if (id < lo) high = middle - 1;
      else if (id > hi) low = middle + 1;
      else return true;
    }
    return false;
  }

  /** The acknowledged numbers between two rows, both included. */
  within(from: RowId, to: RowId): readonly Range[] {
    return this.#spans
      .filter(([lo, hi]) => lo <= to && hi >= from)
      .map(([lo, hi]) => [Math.max(lo, from), Math.min(hi, to)]);
  }
}

/** Sorted, with adjacent ranges merged. */
export function joined(spans: readonly Range[]): readonly Range[] {
  const out: [number, number][] = [];
  for (const [lo, hi] of spans.toSorted(([a], [b]) => a - b)) {
    const last = out.at(-1);
    if (last && lo <= last[1] + 1) last[1] = Math.max(last[1], hi);
    else out.push([lo, hi]);
  }
  return out;
}

function isSeq(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < seq_max;
}
