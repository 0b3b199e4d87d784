/** List Kits with thousands of kits. */
import { expect, it } from 'vitest';
import { listKits } from '../../../src/cloud/kit-list.ts';

it('gives others a turn while it summarises thousands of kits', async () => {
  const kits = Array.from({ length: 2_000 }, (_, n) => `kit-${n}`);
  const store = { kits: async () => [], assetStates: async () => [] };
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const listed = await listKits(store, { kits }, { now_ms: 0 });
  isOver = true;
  expect(listed.map(({ kit }) => kit.id)).toEqual(kits);
  expect(turns).toBeGreaterThanOrEqual(8);
});
