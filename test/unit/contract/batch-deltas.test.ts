/** Integers are written as differences, and adding them up returns the same integers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeDeltas } from '../../../src/contract/batch/batch.ts';
import { encodeDeltas } from '../../../src/contract/batch/deltas.ts';
import { scaled_max } from '../../../src/contract/batch/encode.ts';

const read = (text: string): unknown => JSON.parse(text);
const integer = fc.oneof(
  fc.integer({ min: -1_000, max: 1_000 }),
  fc.integer({ min: 1 - scaled_max, max: scaled_max - 1 }),
  fc.integer({ min: 0, max: 15 }).map((digits) => 10 ** digits),
  fc.integer({ min: 0, max: 15 }).map((digits) => 1 - 10 ** digits),
);

describe('differences of integers', () => {
  it('are the same JSON text that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.array(integer), (integers) => {
        const differences = integers.map((each, index) => each - (integers[index - 1] ?? 0) + 0);
        expect(encodeDeltas(integers)).toBe(JSON.stringify(differences));
      }),
      { numRuns: 2_000 },
    );
  });

  it('add up to the integers again, also when there are more than usual', () => {
    const integers = Array.from({ length: 10_000 }, (_, row) => (row % 2 === 0 ? -1 : 1) * (scaled_max - 1));
    expect(decodeDeltas(read(encodeDeltas(integers)) as number[])).toEqual(integers);
  });

  it('of a single integer is that integer', () => {
    expect(encodeDeltas([-0])).toBe('[0]');
    expect(encodeDeltas([1_795_255_200_000])).toBe('[1795255200000]');
  });
});
