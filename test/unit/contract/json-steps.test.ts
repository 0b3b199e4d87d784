/** Long JSON in steps is the JSON that `JSON.parse` reads. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseInSteps } from '../../../src/contract/batch/json-steps.ts';
import { finish, Pace, pace_chars } from '../../../src/contract/batch/steps.ts';

/** Without the texts that are short enough to be parsed at once. */
const parse = (text: string): unknown => finish(parseInSteps(text, new Pace(), -1));

function resultOf(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch (error) {
    return error instanceof SyntaxError ? 'refused' : error;
  }
}

describe('parseInSteps', () => {
  it('gives the value of any JSON, however it is written', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t', '\r\n '), (text, space) => {
        const written = JSON.stringify(JSON.parse(text), undefined, space);
        expect(JSON.stringify(parse(written))).toBe(JSON.stringify(JSON.parse(written)));
      }),
    );
  });

  it('refuses what JSON.parse refuses, and nothing else', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"__proto__"',
      '"\\u0041"',
      '"\\x"',
      '"\n"',
      '"',
      '\\',
      '1',
      '-',
      '01',
      '1.5e3',
      '1e',
      'true',
      'nul',
      'NaN',
      ' ',
      '\n',
      '\u00a0',
      '\ufeff',
      '//',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 9 }), (tokens) => {
        const text = tokens.join('');
        expect(resultOf(() => parse(text))).toEqual(resultOf((): unknown => JSON.parse(text)));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}',
    '[[],{},[{}]]',
    '""',
    ' 1 ',
    '[1]]',
    '[1,]',
    '{"a":1,}',
    '{1:1}',
  ])('reads %s as JSON.parse does', (text) => {
    expect(resultOf(() => parse(text))).toEqual(resultOf((): unknown => JSON.parse(text)));
  });

  it('keeps a key of a prototype as a key', () => {
    expect(Object.entries(parse('{"__proto__":1}') ?? {})).toEqual([['__proto__', 1]]);
  });

  it('yields each time it has read as much as one step may cost', () => {
    const text = JSON.stringify(Array.from({ length: 200_000 }, (_, at) => at.toString(36)));
    const yields = [...parseInSteps(text, new Pace())].length;
    expect(yields).toBeGreaterThanOrEqual(Math.floor(text.length / pace_chars));
  });
});
