import { expect, test } from 'vitest';
import { localTime } from '../../../src/platform/local-time.ts';

const now = new Date(2026, 10, 26, 0, 5);

test.each<[string, Date, string]>([
  ['a moment of today as the time of day', new Date(2026, 10, 26, 0, 0, 0), '00:00:00'],
  ['a later moment of today as the time of day', new Date(2026, 10, 26, 23, 59, 59, 999), '23:59:59'],
  ['yesterday with the date, though minutes ago', new Date(2026, 10, 25, 23, 59, 59), '2026-11-25 23:59:59'],
  ['tomorrow with the date', new Date(2026, 10, 27, 7, 8, 9), '2026-11-27 07:08:09'],
  ['the same day of another year with the date', new Date(2025, 10, 26, 0, 5), '2025-11-26 00:05:00'],
  ['a day of January in two digits', new Date(2026, 0, 2, 3, 4, 5), '2026-01-02 03:04:05'],
])('shows %s', (_, at, shown) => {
  expect(localTime(at.toISOString(), now)).toBe(shown);
  expect(localTime(at.getTime(), now)).toBe(shown);
});
