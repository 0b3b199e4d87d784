/** Ranges of numbers that a cloud acknowledges; a cloud may send any. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AckRanges } from '../../../../src/kit/outbox/ack-ranges.ts';
import { rowId, seq_max } from '../../../../src/kit/outbox/row.ts';

const epoch = 7;
const has = (ranges: AckRanges, seq: number): boolean => ranges.has(rowId({ epoch, seq }));

describe('AckRanges', () => {
  it('contains exactly the numbers of its ranges, whatever their order and overlap', () => {
    const range = fc.tuple(fc.nat(60), fc.nat(60)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), (list) => {
        const ranges = new AckRanges(epoch, list);
        for (let seq = 0; seq <= 62; seq += 1)
          expect(has(ranges, seq)).toBe(list.some(([lo, hi]) => lo <= seq && seq <= hi));
      }),
    );
  });

  it('contains no number of another epoch', () => {
    const ranges = new AckRanges(epoch, [[0, seq_max - 1]]);
    expect(has(ranges, 0)).toBe(true);
    expect(ranges.has(rowId({ epoch: epoch - 1, seq: 5 }))).toBe(false);
    expect(ranges.has(rowId({ epoch: epoch + 1, seq: 0 }))).toBe(false);
  });

  it.each<readonly [string, readonly [number, number], number | undefined]>([
    ['begins below zero', [-1, 5], undefined],
    ['ends before it begins', [5, 4], undefined],
    ['is not whole', [0.5, 4], undefined],
    ['goes beyond the numbers of an epoch', [0, seq_max], undefined],
    ['names numbers that were never given out', [0, 11], 10],
    ['has no number at all', [Number.NaN, Number.NaN], undefined],
  ])('ignores and counts a range that %s', (_, range, last_seq) => {
    const ranges = new AckRanges(epoch, [range, [2, 3]], last_seq);
    expect(ranges.impossible).toBe(1);
    expect([1, 2, 3, 4].map((seq) => has(ranges, seq))).toEqual([false, true, true, false]);
  });
});
