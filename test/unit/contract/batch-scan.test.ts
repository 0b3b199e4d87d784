/** Rows are read into columns without being parsed: with and without parsing, the same batch is written. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { writeBatch } from '../../../src/contract/batch/pack.ts';
import { type BatchItem } from '../../../src/contract/batch/writer.ts';

const rowOf = (data: string, seq: number): BatchItem => ({
  channel: 'feed/x/gps',
  epoch: 1,
  seq,
  time_ms: 0,
  data,
});
const written = (texts: readonly string[]): string => writeBatch(texts.map(rowOf), { historical: true });
/** A space behind the first brace is legal JSON that only a parser reads. */
const parsed = (text: string): string => text.replace('{', '{ ');
const columnsOf = (text: string): string => /"c":\[.*/.exec(text)?.[0] ?? '';

const measured = fc.tuple(fc.integer(), fc.integer({ min: 0, max: 12 })).map(([n, d]) => n / 10 ** d);
const value = fc.oneof(
  measured,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.string(),
  fc.constantFrom(null, true, false, '2026-11-21T10:00:00.000Z', '2026-11-21T10:00:01.500Z'),
);
const rows = fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }).chain((keys) =>
  fc.array(fc.tuple(...keys.map(() => value)), { minLength: 2, maxLength: 8 }).map((all) =>
    all.map((values) => {
      const fields = keys.map((key, index) => `${JSON.stringify(key)}:${JSON.stringify(values[index])}`);
      return `{${fields.join(',')}}`;
    }),
  ),
);

describe('the columns of a batch', () => {
  it('are the same whether its rows could be read without parsing or not', () => {
    fc.assert(
      fc.property(rows, (texts) => {
        expect(columnsOf(written(texts))).toBe(columnsOf(written(texts.map(parsed))));
      }),
      { numRuns: 2_000 },
    );
  });

  it('are the same when only some of its rows could be', () => {
    const texts = ['{"a":1.5,"b":"x"}', '{"a":2,"b":"y"}', '{"a":0.25,"b":"z"}'];
    const mixed = texts.map((text, index) => (index === 1 ? parsed(text) : text));
    expect(columnsOf(written(mixed))).toBe(columnsOf(written(texts)));
  });

  it.each([
    '{"a":01}',
    '{"a":1.}',
    '{"a":.5}',
    '{"a":-}',
    '{"a":1}}',
    '{"a":1,}',
    '{"a":nul}',
    '{"a":"x}',
    '{"a":"\n"}',
  ])('never hold %j, which is no JSON', (broken) => {
    expect(() => written(['{"a":1}', broken])).toThrow(SyntaxError);
  });
});
