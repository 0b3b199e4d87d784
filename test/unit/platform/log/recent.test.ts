/** The last lines of the log, as a support bundle has them. */
import { expect, it } from 'vitest';
import { LogRing } from '../../../../src/platform/log/log.ts';
import { texts } from '../../../../src/platform/texts.ts';

it('tells first how many earlier lines are left out, so that a cut log does not look whole', () => {
  const ring = new LogRing();
  for (let n = 1; n <= 2_000; n += 1) ring.push(`line ${n}`);
  expect(ring.lines()[0]).toBe('line 1');
  for (let n = 2_001; n <= 2_003; n += 1) ring.push(`line ${n}`);
  const [first = '', second] = ring.lines();
  expect(JSON.parse(first)).toEqual({ level: 'info', msg: texts.lines_left_out, lines: 3 });
  expect(second).toBe('line 4');
});
