/** Assets that the kit no longer has, and that a broker brings back from an old snapshot. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { kit_limits } from '../../../../src/cloud/store/apply/apply.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { idOf, received, start_ms, truck } from '../story.ts';

const other_id = '7d0b5f0c-64a0-5b8e-9c55-0b8f3c0c9a01';
const announce = (id: string, seq: number, epoch = 17): Reception =>
  received({ channel: channels.asset(id), seq, epoch, data: { ...samples['announcement'], id } });
const roster = (assets: readonly string[], seq: number, epoch = 17): Reception =>
  received({ channel: channels.roster, seq, epoch, data: { assets } });

onEachDatabase('the roster of a kit', (open) => {
  async function storeWith(...receptions: readonly Reception[]): Promise<Store> {
    const store = sqlStore(await open());
    for (const each of receptions) await store.commit([each], start_ms);
    return store;
  }
  const idsOf = async (store: Store) => (await store.assets(kit_id)).map(({ id }) => id);

  it('removes what it does not name, as of its number', async () => {
    const store = await storeWith(announce(asset_id, 9, 12), announce(other_id, 1), announce(task_id, 5));
    const { changes } = await store.commit([roster([other_id], 3)], start_ms);
    expect(changes).toEqual([{ kind: 'asset_gone', kit_id, asset_id }]);
    expect((await idsOf(store)).sort()).toEqual([other_id, task_id].sort());
  });

  it('keeps away an asset of an older number that comes after it, and not one of a newer number', async () => {
    const store = await storeWith(roster([other_id], 3));
    expect((await store.commit([announce(asset_id, 2)], start_ms)).changes).toEqual([]);
    expect((await store.commit([announce(asset_id, 9, 12)], start_ms)).changes).toEqual([]);
    expect(await idsOf(store)).toEqual([]);
    await store.commit([announce(other_id, 1), announce(asset_id, 4)], start_ms);
    expect((await idsOf(store)).sort()).toEqual([asset_id, other_id].sort());
  });

  it('changes nothing when it is older than another one', async () => {
    const store = await storeWith(announce(asset_id, 1), roster([asset_id], 5), roster([], 4));
    expect(await idsOf(store)).toEqual([asset_id]);
  });

  it('leaves the assets of partners alone', async () => {
    const store = await storeWith(announce(asset_id, 1));
    await store.addPartner(truck(task_id));
    await store.commit([roster([], 2)], start_ms);
    expect(await idsOf(store)).toEqual([task_id]);
  });

  it.each(['gone', 'there'] as const)(
    'takes a new asset and its feeds unless all places are taken by assets that are there: they are %s',
    async (which) => {
      const database = await open();
      const store = sqlStore(database);
      // As a stranger makes them who appears as a new vehicle again and again.
      const isGone = which === 'gone' ? 1 : 0;
      const assets = Array.from({ length: kit_limits.assets }, (_, n) => idOf(n));
      const stamp = '0, 1, 1, 1';
      const dataOf = (id: string): string => JSON.stringify({ ...samples['announcement'], id });
      await database.all(
        `INSERT INTO assets (kit_id, asset_id, data, gone, partner, time_ms, epoch, seq, unsynced) VALUES
         ${assets.map((id) => `('${kit_id}', '${id}', '${dataOf(id)}', ${isGone}, 0, ${stamp})`).join()}`,
      );
      await database.all(
        `INSERT INTO commands (kit_id, asset_id, data, time_ms, epoch, seq, unsynced) VALUES
         ${assets.map((id) => `('${kit_id}', '${id}', '[]', ${stamp})`).join()}`,
      );
      await database.all(
        `INSERT INTO feeds (kit_id, asset_id, feed, data, time_ms, epoch, seq, unsynced) VALUES
         ${assets.flatMap((id) => ['gps', 'battery'].map((feed) => `('${kit_id}', '${id}', '${feed}', '{}', ${stamp})`)).join()}`,
      );
      const [fix, none] = [
        { lat: 47.4, lon: 8.5 },
        { revision: 1, commands: [] },
      ];
      const arrivals = [
        // The feed first: it needs room before the announcement makes some.
        received({ channel: channels.feed(asset_id, 'gps'), seq: 2, data: fix }),
        announce(asset_id, 4),
        received({ channel: channels.commands(asset_id), seq: 3, data: none }),
      ];
      const refused = [];
      for (const each of arrivals) refused.push(...(await store.commit([each], start_ms)).refused);
      expect(refused).toHaveLength(which === 'gone' ? 0 : 3);
      expect((await idsOf(store)).includes(asset_id)).toBe(which === 'gone');
    },
  );
});
