/** JSON from outside is counted before it is built. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countValues, keys_max, message_limits, readJson } from '../../../src/contract/bounded-json.ts';

const limits = { bytes_max: 1_000, depth_max: 4, values_max: 20, string_max: 50 };

describe('readJson', () => {
  it('returns any value within the limits as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        expect(readJson(text, message_limits)).toEqual(JSON.parse(text));
        expect(readJson(Buffer.from(text), message_limits)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each([
    ['more bytes', `"${'x'.repeat(40)}"${' '.repeat(1_000)}`, '1042 bytes; at most 1000'],
    ['more bytes than characters', `["${'\u20ac'.repeat(350)}"]`, '1054 bytes; at most 1000'],
    ['more levels', '[[[[[1]]]]]', 'nested deeper than 4 levels'],
    ['levels that never end', '[{"a":'.repeat(20), 'nested deeper than 4 levels'],
    ['more values', `[${'1,'.repeat(20)}1]`, 'more than 20 values'],
    ['more empty containers', `[${'[],'.repeat(12)}1]`, 'more than 20 values'],
    ['a longer string', `"${'x'.repeat(51)}"`, 'a string of more than 50 characters'],
    ['a longer key', `{"${'x'.repeat(51)}":1}`, 'a string of more than 50 characters'],
    ['a longer string of escapes', `"${'\\"'.repeat(40)}"`, 'a string of more than 50 characters'],
    ['a string without an end', `"${'x'.repeat(51)}`, 'a string of more than 50 characters'],
  ])('refuses %s than the limit before it parses', (_, text, message) => {
    expect(() => readJson(text, limits)).toThrow(RangeError);
    expect(() => readJson(text, limits)).toThrow(message);
  });

  it('does not count what stands inside a string', () => {
    const text = JSON.stringify('[[[[[,,,,,,,,,,,,,,,,,,,,,,{{{{\\"');
    expect(readJson(text, limits)).toBe(JSON.parse(text));
  });

  it.each([
    ['one object', (keys: readonly string[]) => `{${keys.map((key) => `"${key}":1`).join(',')}}`],
    ['many objects', (keys: readonly string[]) => `[${keys.map((key) => `{"${key}" : {}}`).join(',')}]`],
  ])('counts the different keys of %s, and not those that come again', (_, textOf) => {
    const different = Array.from({ length: keys_max + 300 }, (__, at) => `k${at}`);
    expect(() => readJson(textOf(different), message_limits)).toThrow('different keys');
    const same = Array.from({ length: 12_000 }, (__, at) => `k${at % 4_000}`);
    expect(countValues(textOf(same), message_limits)).toBeGreaterThan(12_000);
    expect(countValues(textOf(different.slice(0, keys_max)), message_limits)).toBeGreaterThan(keys_max);
  });

  it('reports faults of the syntax as JSON.parse does', () => {
    for (const text of ['', '{', '"a', ']]]]', '"\\'])
      expect(() => readJson(text, limits)).toThrow(SyntaxError);
  });
});
