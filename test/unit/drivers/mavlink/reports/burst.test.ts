/** Bursts: so many times within a window, whatever came before. */
import { expect, it } from 'vitest';
import { Burst } from '../../../../../drivers/mavlink/reports/own-heartbeats.ts';

it('A burst is so many times within the window, and goes on while they keep coming', () => {
  const burst = new Burst(3, 1_000);
  expect([0, 400, 900, 1_300, 2_301].map((ms) => burst.note(ms))).toEqual([false, false, true, true, false]);
});

it('A burst of a million costs no more for the last time than for the first', () => {
  const burst = new Burst(8, 5_000);
  let noticed = 0;
  for (let n = 0; n < 1_000_000; n += 1) if (burst.note(n / 1_000)) noticed += 1;
  expect(noticed).toBe(1_000_000 - 7);
});
