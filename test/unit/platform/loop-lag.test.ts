/** The lateness of the event loop. */
import { expect, onTestFinished, test } from 'vitest';
import { measureLoopLag } from '../../../src/platform/loop-lag.ts';
import { eventually } from '../../support/eventually.ts';

test('a loop that was held up shows for how long, to every reader', async () => {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const lag = measureLoopLag(end.signal);
  expect(lag.figures()).toEqual({ mean_ms: 0, p99_ms: 0, max_ms: 0 });
  await eventually('a first sample', () => lag.figures().max_ms >= 0);
  const began_ms = performance.now();
  await eventually('the hold-up is measured', () => {
    const until_ms = performance.now() + 150;
    while (performance.now() < until_ms);
    return lag.figures().max_ms >= 50;
  });
  const figures = lag.figures();
  expect(figures.max_ms).toBeLessThan(performance.now() - began_ms + 1_000);
  expect(lag.figures().max_ms).toBeGreaterThanOrEqual(figures.max_ms);
});
