/** Marks on the map that stand close together. */
import { expect, it } from 'vitest';
import { crowdsOf } from '../../../src/console/views/map/overlay.ts';

it('draws marks that touch smaller, and counts those that one mark hides', () => {
  expect(
    crowdsOf([
      [100, 100],
      [17, 10],
      [10, 10],
      [12, 13],
      [100, 119],
      [121, 100],
    ]),
  ).toEqual([
    { isTight: true, covered: [] },
    { isTight: true, covered: [3] },
    { isTight: true, covered: [3] },
    { isTight: true, covered: [2, 1] },
    { isTight: true, covered: [] },
    { isTight: false, covered: [] },
  ]);
  expect(crowdsOf([])).toEqual([]);
});
