/** A service that has outgrown its SQLite file takes everything with it. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { copyRows, isEmpty } from '../../../../src/cloud/sql/copy-rows.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { received, start_ms } from '../story.ts';

onEachDatabase('What is copied from SQLite', (open) => {
  it('is all there, and the kit goes on where it was (infinidysk/infinidysk#1012)', async () => {
    const source = openSqlite(':memory:');
    const before = sqlStore(source);
    let seq = 0;
    const send = async (store: Store, channel: string, data: JsonObject, number = (seq += 1)) =>
      store.commit([received({ channel, seq: number, time_ms: start_ms, data })], start_ms);
    await send(before, channels.state, samples['kitState'] ?? {});
    await send(before, channels.asset(asset_id), samples['announcement'] ?? {});
    for (let n = 0; n < 120; n += 1) await send(before, channels.feed(asset_id, `feed${n}`), { n });
    await send(before, channels.event(asset_id, 'motion'), { detected: true });
    await before.setKitLabel(kit_id, { name: 'North ridge', tags: ['alps'] });
    const rights = { label: 'ops', scopes: ['read'], kits: [kit_id], expires_ms: null };
    await before.addKey(makeKey(rights, start_ms).key);
    const database = await open();
    expect(await isEmpty(database)).toBe(true);
    expect(await copyRows(source, database)).toBeGreaterThan(120);
    expect(await isEmpty(database)).toBe(false);
    const after = sqlStore(database);
    const query = { kits: [kit_id], states: ['open' as const], limit: 10, now_ms: start_ms };
    for (const read of [
      async (store: Store) => store.kit(kit_id),
      async (store: Store) => store.keys(),
      async (store: Store) => store.assets(kit_id),
      async (store: Store) => store.feeds(kit_id, asset_id),
      async (store: Store) => store.alarms(query),
      async (store: Store) => store.acks(kit_id),
      async (store: Store) => (await store.historyArrivals(kit_id, 0)).landed.length,
    ])
      expect(await read(after)).toEqual(await read(before));
    await send(after, channels.feed(asset_id, 'feed1'), { n: 1 }, 4);
    expect((await after.kit(kit_id))?.counts.duplicates).toBe(1);
    expect(await database.all(`SELECT name FROM service WHERE name = 'history_leader'`)).toEqual([]);
    await source.close();
  });
});
