/** How long a start may take: systemd hears that it goes on, and not for ever. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { extendStart } from '../../../../src/cli/daemon/daemon.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('extends the time of a start before it is over, until the start ends', () => {
  const extended: number[] = [];
  const starting = new AbortController();
  extendStart({ extendStart: (by_ms) => extended.push(by_ms) }, starting.signal);
  expect(extended).toEqual([60_000]);
  vi.advanceTimersByTime(30_000);
  expect(extended).toHaveLength(4);
  starting.abort();
  vi.advanceTimersByTime(60_000);
  expect(extended).toHaveLength(4);
});

it('leaves a start that hangs to systemd after a quarter of an hour', () => {
  let extensions = 0;
  const starting = new AbortController();
  extendStart({ extendStart: () => (extensions += 1) }, starting.signal);
  vi.advanceTimersByTime(900_000);
  const within_limit = extensions;
  vi.advanceTimersByTime(3_600_000);
  expect(extensions).toBe(within_limit);
  starting.abort();
});
