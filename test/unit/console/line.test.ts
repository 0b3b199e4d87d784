/** The lines of the small charts. */
import { expect, it } from 'vitest';
import { lineThrough } from '../../../src/console/views/parts/spark.ts';

it.each([
  ['neighbours as a line', [[0, 1] as const, [2.04, 3] as const], 'M0.0 1.0L2.0 3.0'],
  ['a value without neighbours as a dot', [[5, 6] as const], 'M5.0 6.0h0'],
  ['nothing of no value', [], ''],
])('draws %s', (_, points, path) => {
  expect(lineThrough(points)).toBe(path);
});
