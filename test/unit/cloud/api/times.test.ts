/** The one reader of times that people and clients write. */
import { describe, expect, it } from 'vitest';
import { readTime } from '../../../../src/cloud/api/times.ts';

const noon_ms = Date.UTC(2026, 10, 21, 12);

describe('a time', () => {
  it.each([
    ['2026-11-21T12:00:00Z', noon_ms],
    ['2026-11-21T12:00:00.000Z', noon_ms],
    ['2026-11-21T13:30:00+01:30', noon_ms],
    ['2026-11-21T07:00:00-05:00', noon_ms],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    [String(noon_ms), noon_ms],
  ])('is read from %s', (text, time_ms) => {
    expect(readTime(text)).toBe(time_ms);
  });

  // V8 finds a time in each of the first ones (chakra-core/ChakraCore#5789, iamkun/dayjs#2871).
  it.each([
    ['a word and a number', 'yesterday 1'],
    ['a relative form', 'now-6'],
    ['a number below zero', '-1'],
    ['a date of some country', '11/12/2026'],
    ['a day that does not exist', '2026-02-30T00:00:00Z'],
    ['a leap day of another year', '2026-02-29T00:00:00Z'],
    ['a time without a zone', '2026-11-21T12:00:00'],
    ['a date', '2026-11-21'],
    ['a date with a zone', '2026-11-21Z'],
    ['no seconds', '2026-11-21T12:00Z'],
    ['a zone without minutes', '2026-11-21T12:00:00+01'],
    ['a + that an address made a space', '2026-11-21T13:00:00 01:00'],
    ['hour 24', '2026-11-21T24:00:00Z'],
    ['seconds since 1970', '1795262400'],
    ['microseconds since 1970', '1795262400000000'],
    ['milliseconds with a fraction', '1795262400000.5'],
    ['nothing', ''],
  ])('is not read from %s', (_, text) => {
    expect(readTime(text)).toBeUndefined();
  });
});
