/** Small payloads that hold millions of values: refused at the first count, before a schema lists their faults. */
import { deflateSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { batch, openBatchSteps, unpackBatch } from '../../../src/contract/batch/batch.ts';
import { batch_text_max } from '../../../src/contract/batch/pack.ts';
import { Pace } from '../../../src/contract/batch/steps.ts';

const head = '{"v":1,"historical":false,"groups":[';
const filled = (start: string, unit: string, end: string): Uint8Array => {
  const count = Math.floor((batch_text_max - start.length - end.length) / unit.length);
  return deflateSync(`${start}${unit.repeat(count)}${end}`, { level: 9 });
};
const keyNames = (count: number, first = 0): readonly string[] =>
  Array.from({ length: count }, (_, at) => `"k${first + at}"`);
const keys = (count: number, first = 0): string =>
  keyNames(count, first)
    .map((key) => `${key}:1`)
    .join(',');
const ints = (count: number, value = '1'): string => `[${Array<string>(count).fill(value).join(',')}]`;

describe('a batch of a few kilobytes', () => {
  let asked: ReturnType<typeof vi.spyOn>;
  beforeEach(() => {
    asked = vi.spyOn(batch, 'parse');
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    ['4 million groups', filled(head, '1,', '1]}'), 'more than 300000 values'],
    ['250,000 groups', deflateSync(`${head}${'1,'.repeat(250_000)}1]}`), '250001 groups; at most 10000'],
    [
      '9,000 groups that are none',
      deflateSync(`${head}${'1,'.repeat(9_000)}1]}`),
      'a group: expected object',
    ],
    ['arrays in arrays', filled(head, '[', ']}'), 'nested deeper than 40 levels'],
    [
      'arrays that open and close',
      filled(head, `${'['.repeat(30)}${']'.repeat(30)},`, '1]}'),
      '300000 values',
    ],
    [
      '250,000 numbers of one group',
      deflateSync(`${head}{"e":1,"ch":"a","seq":${ints(250_000)},"t":[1]}]}`),
      '250000 messages',
    ],
    [
      'texts for numbers',
      deflateSync(
        `${head}{"e":1,"ch":"a","seq":${ints(9_000, '""')},"t":${ints(9_000)},"v":${ints(9_000)}}]}`,
      ),
      'no integer',
    ],
    [
      '250,000 columns',
      deflateSync(`${head}{"e":1,"ch":"a","seq":[1],"t":[1],"k":[],"c":${ints(250_000, '1')}}]}`),
      '250000 columns for 0 keys',
    ],
    [
      '100,000 keys',
      deflateSync(`${head}{"e":1,"ch":"a","seq":[1],"t":[1],"k":${ints(100_000, '"a"')},"c":[]}]}`),
      '100000 keys in a group',
    ],
    [
      'a long column',
      deflateSync(`${head}{"e":1,"ch":"a","seq":[1],"t":[1],"k":["a"],"c":[{"d":${ints(250_000, '""')}}]}]}`),
      'a column has 250000 values for 1 messages',
    ],
    ['unknown keys of a group', deflateSync(`${head}{${keys(8_000)}}]}`), 'a group of 8000 keys'],
    ['unknown keys of the batch', deflateSync(`{${keys(8_000)}}`), 'a batch of 8000 keys'],
    [
      'objects of a hundred different keys each',
      deflateSync(
        `${head}{"e":1,"ch":"a","seq":${ints(100)},"t":${ints(100)},"v":[${Array.from({ length: 100 }, (_, at) => `{${keys(100, at * 100)}}`).join(',')}]}]}`,
      ),
      'more than 8192 different keys',
    ],
    [
      'columns of different keys in each group',
      deflateSync(
        `${head}${Array.from({ length: 100 }, (_, at) => `{"e":1,"ch":"a","seq":[1],"t":[1],"k":[${keyNames(100, at * 100).join(',')}],"c":${ints(100, '{"c":1}')}}`).join(',')}]}`,
      ),
      'more than 8192 different keys',
    ],
  ])('that holds %s is refused before its schema is asked', (_, payload, message) => {
    expect(() => unpackBatch(payload)).toThrow(message);
    expect(asked).not.toHaveBeenCalled();
  });

  it('lets other work go first between inflating, decoding and counting', () => {
    const steps = openBatchSteps(filled(head, '1,', '1]}'), new Pace());
    expect([steps.next(), steps.next()]).toEqual([{ done: false }, { done: false }]);
    expect(() => steps.next()).toThrow('more than 300000 values');
  });
});
