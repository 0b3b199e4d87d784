/** What was seen recently is remembered, for its time and in bounded memory. */
import { expect, it } from 'vitest';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';

it('What was seen is remembered for its time, counted from when it was noted last', () => {
  const seen = new SeenRecently<string, number>({ keep_ms: 1_000, max: 4 });
  seen.note('a', 1, 0);
  expect([seen.get('a', 999), seen.get('a', 1_000), seen.has('b', 0)]).toEqual([1, undefined, false]);
  seen.note('a', 2, 900);
  expect(seen.get('a', 1_800)).toBe(2);
});

it('The latest ones are remembered while others keep coming, and not more than twice as many', () => {
  const seen = new SeenRecently<number>({ keep_ms: 1_000, max: 100 });
  for (let key = 0; key < 10_000; key += 1) {
    seen.note(key, true, 0);
    expect(seen.has(Math.max(0, key - 99), 0)).toBe(true);
  }
  const known = Array.from({ length: 10_000 }, (_, key) => key).filter((key) => seen.has(key, 0));
  expect(known.length).toBeLessThanOrEqual(200);
});

it('What is noted again does not displace the others', () => {
  const seen = new SeenRecently<number>({ keep_ms: 1_000, max: 2 });
  seen.note(1, true, 0);
  for (let count = 0; count < 10; count += 1) seen.note(2, true, 0);
  expect(seen.has(1, 0)).toBe(true);
});
