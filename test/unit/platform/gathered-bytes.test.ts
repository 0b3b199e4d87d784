import { expect, it } from 'vitest';
import { GatheredBytes } from '../../../src/platform/gathered-bytes.ts';

it('keeps the bytes of a million pieces, and none of the pieces', () => {
  const pieces = 1_000_000;
  const source = Buffer.alloc(1_000, 'abcdefghij');
  const gathered = new GatheredBytes(pieces);
  for (let at = 0; at < pieces; at += 1) gathered.add(source.subarray(at % 1_000, (at % 1_000) + 1));
  source.fill(0);
  expect(gathered.all().equals(Buffer.alloc(pieces, 'abcdefghij'))).toBe(true);
  expect(gathered.all().buffer.byteLength).toBe(pieces);
  expect(gathered.last(3).toString()).toBe('hij');
});

it('takes a piece whole or not at all, up to its limit', () => {
  const gathered = new GatheredBytes(5);
  expect(gathered.last(3)).toHaveLength(0);
  expect(gathered.add(Buffer.from('abc'))).toBe(true);
  expect(gathered.add(Buffer.from('def'))).toBe(false);
  expect(gathered.add(Buffer.from('de'))).toBe(true);
  expect(gathered.all().toString()).toBe('abcde');
  expect(gathered.length).toBe(5);
  expect(gathered.last(9).toString()).toBe('abcde');
});
