/** Kits whose messages are committed together are stored as if each had come alone. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { divide, gps, historyOf, received, start_ms, story } from '../story.ts';

const other_id = randomUUID();
const late_ms = start_ms + 100;

/** What a kit sent within the time of a commit, some of it again, and of feeds of two assets. */
const sent = [
  ...story,
  ...story.slice(0, 4),
  { channel: channels.feed(other_id, 'gps'), seq: 11, data: { lat: 1, lon: 2 } },
  { channel: channels.feed(other_id, 'battery'), seq: 12, data: { level: 3 } },
  { ...gps(13, 47.4), epoch: 18 },
];

const of = (kit_id: string, reception: Reception): Reception => ({ ...reception, kit_id });

async function stateOf(store: Store, kit_id: string) {
  return {
    kit: { ...(await store.kit(kit_id)), kit_id: '' },
    assets: await store.assets(kit_id),
    feeds: [...(await store.feeds(kit_id, asset_id)), ...(await store.feeds(kit_id, other_id))],
    tasks: (await store.tasks(kit_id, { limit: 10 })).map((task) => ({ ...task, kit_id: '' })),
    acks: await store.acks(kit_id),
    history: await historyOf(store, { kit: kit_id }),
  };
}

onEachDatabase('kits of one commit', (open) => {
  it('have the values, the acknowledgements and the history that each of them alone has', async () => {
    const store = sqlStore(await open());
    const alone = randomUUID();
    const together = Array.from({ length: 6 }, () => randomUUID());
    const parts = [sent.slice(0, 9), sent.slice(9)];
    for (const some of parts)
      await store.commit(
        some.map((each) => of(alone, received(each))),
        start_ms,
      );
    await store.eraseHistory({ kit_id: alone, asset_id: other_id, before_ms: late_ms }, late_ms);
    for (const some of parts) {
      const { acks } = await store.commit(
        some.flatMap((each) => together.map((kit_id) => of(kit_id, received(each)))),
        start_ms,
      );
      expect(new Set(acks.map(({ kit_id }) => kit_id))).toEqual(new Set(together));
    }
    for (const kit_id of together)
      await store.eraseHistory({ kit_id, asset_id: other_id, before_ms: late_ms }, late_ms);
    // An asset of which everything was erased, with a position of before the erasure, which is its newest, and a battery of after it.
    const late = [
      { channel: channels.feed(other_id, 'gps'), seq: 21, data: { lat: 5, lon: 6 } },
      { channel: channels.feed(other_id, 'battery'), seq: 22, data: { level: 7 }, time_ms: late_ms + 1 },
      { ...gps(23, 47.5), epoch: 18 },
    ];
    for (const kit_ids of [[alone], together])
      await store.commit(
        late.flatMap((each) => kit_ids.map((kit_id) => of(kit_id, received(each)))),
        start_ms,
      );
    await divide(store);
    const expected = await stateOf(store, alone);
    expect(expected.history.length).toBeGreaterThan(10);
    expect(expected.feeds.map(({ feed }) => feed)).toEqual(['gps', 'battery', 'gps']);
    for (const kit_id of together) expect(await stateOf(store, kit_id)).toEqual(expected);
    expect((await store.kits('*')).length).toBe(together.length + 1);
  });
});
