import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { csvLine } from '../../../../../src/cloud/http/history/csv.ts';

/** The cells of one file as a spreadsheet sees them: quotation marks hold a cell only where it begins with one. */
function cellsOf(text: string, separator: ',' | ';'): readonly string[] {
  const quoted = '(?:"(?:[^"]|"")*"?)?';
  const cells = text.matchAll(
    new RegExp(`(?:^|[${separator}\\t\\r\\n])(${quoted}[^${separator}\\t\\r\\n]*)`, 'gu'),
  );
  return [...cells].map(([, cell = '']) =>
    cell.replace(/^"((?:[^"]|"")*)"?/u, (_, held: string) => held.replaceAll('""', '"')),
  );
}

const isFormula = (cell: string): boolean => /^ *[=+\-@＝＋－＠]/u.test(cell);

describe('A line of CSV', () => {
  it('has its values as they are, in quotation marks where they need them', () => {
    expect(csvLine(['a', 1, -2.5, null, undefined, 'b,"c"', '{"x":1}'])).toBe(
      'a,1,-2.5,,,"b,""c""","{""x"":1}"',
    );
  });

  it.each(['=1+1', '+1', '-1', '@SUM(1)', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1', '＠1'])(
    'makes no formula of a value or a name that begins as one: %j',
    (text) => {
      expect(csvLine([text]).replaceAll('"', '').startsWith("'")).toBe(true);
    },
  );

  it('makes none of a part behind what separates cells, in a spreadsheet with commas or with semicolons', () => {
    const piece = fc.constantFrom(
      '=',
      '+',
      '-',
      '@',
      '＝',
      ';',
      ',',
      '\t',
      '\r',
      '\n',
      '"',
      "'",
      ' ',
      'a',
      '1',
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, text, (first, second) => {
        const line = csvLine(['2026-11-21T10:00:00.000Z', first, 7, second]);
        for (const separator of [',', ';'] as const) {
          expect([separator, line, cellsOf(line, separator).filter(isFormula)]).toEqual([
            separator,
            line,
            [],
          ]);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('takes no time for a text of separators', () => {
    for (const text of [';', '\t', '; "', '\n ']) {
      const long = text.repeat(100_000);
      expect(csvLine([long]).length).toBeGreaterThan(long.length - 1);
    }
  });
});
