/** The packed coasts and borders of the base map. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packWorld } from '../../../src/tools/pack-world.ts';

it('the world of the base map is what its tool packs, and small enough for a phone', { tags: 'long' }, () => {
  const packed = readFileSync(new URL('../../../src/console/views/map/world.bin', import.meta.url));
  expect(packWorld().equals(packed)).toBe(true);
  expect(packed.length).toBeLessThan(700_000);
});
