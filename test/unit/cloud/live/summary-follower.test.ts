/** What the service holds of the first list of a socket while its client reads slowly. */
import { expect, it } from 'vitest';
import type { KitResource } from '../../../../src/cloud/api/resources.ts';
import { unreportedKit } from '../../../../src/cloud/api/views.ts';
import { type ListedKit, listKits } from '../../../../src/cloud/kit-list.ts';
import { Changes } from '../../../../src/cloud/changes.ts';
import { read_at_once, SharedSummaries, SummaryFollower } from '../../../../src/cloud/live/summaries.ts';

const count = 1_234;
const ids = Array.from({ length: count }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);

it('The first list is read as far as its reader has come, and is sent whole', async () => {
  let read = 0;
  const kits = async (kit_ids: readonly string[]): Promise<readonly ListedKit[]> => {
    read += kit_ids.length;
    const store = { kits: async () => kit_ids.map(unreportedKit), assetStates: async () => [] };
    return listKits(store, { kits: '*' }, { now_ms: 0, kit_ids });
  };
  const end = new AbortController();
  const follower = new SummaryFollower({
    principal: { key_id: 'k', user_id: 'u', label: 'k', scopes: ['read'], kits: '*' },
    shared: new SharedSummaries(new Changes(), kits),
    service: { kitIds: async () => ids, listed: async (_, kit_ids = []) => kits(kit_ids) },
    inTurn: async (work) => work(),
    wake: () => undefined,
    signal: end.signal,
  });
  const sent: KitResource[] = [];
  while (follower.isDue) {
    const frame = await follower.next();
    sent.push(...frame.kits);
    expect(read - sent.length).toBeLessThan(read_at_once);
    expect(frame.left).toBe(count - sent.length);
  }
  expect(sent.map(({ id }) => id)).toEqual(ids);
  expect(read).toBe(count);
  end.abort();
});
