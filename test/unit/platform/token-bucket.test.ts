import { describe, expect, it } from 'vitest';
import { KeyedTokenBuckets, TokenBucket } from '../../../src/platform/token-bucket.ts';

describe('a token bucket', () => {
  it('is full at first, and fills up again over time, never beyond its burst', () => {
    const bucket = new TokenBucket({ perSecond: 2, burst: 3 });
    expect([1, 2, 3, 4].map(() => bucket.take(1_000))).toEqual([true, true, true, false]);
    expect(bucket.take(1_500)).toBe(true);
    expect(bucket.take(1_500)).toBe(false);
    expect(bucket.take(60_000, 3)).toBe(true);
    expect(bucket.take(60_000)).toBe(false);
  });

  it('tells how long it takes until there are so many', () => {
    const bucket = new TokenBucket({ perSecond: 2, burst: 3 });
    expect(bucket.wait_ms(0, 3)).toBe(0);
    bucket.take(0, 3);
    expect(bucket.wait_ms(0)).toBe(500);
    expect(bucket.wait_ms(250)).toBe(250);
    expect(bucket.wait_ms(250, 3)).toBe(1_250);
    expect(bucket.wait_ms(250, 4)).toBe(Infinity);
  });

  it('takes many at once or none', () => {
    const bucket = new TokenBucket({ perSecond: 1_000, burst: 10_000 });
    expect(bucket.take(0, 10_001)).toBe(false);
    expect(bucket.take(0, 10_000)).toBe(true);
    expect(bucket.take(999, 1_000)).toBe(false);
    expect(bucket.take(1_000, 1_000)).toBe(true);
  });
});

describe('a token bucket for each key', () => {
  it('fills no memory with more keys than are remembered: the one used least recently is forgotten', () => {
    const buckets = new KeyedTokenBuckets({ perSecond: 0.001, burst: 1 });
    expect(buckets.of('first').take(0)).toBe(true);
    expect(buckets.of('first').take(0)).toBe(false);
    for (let n = 0; n < 10_000; n += 1) buckets.of(`address ${n}`).take(0);
    expect(buckets.of('first').take(0)).toBe(true);
  });
});
