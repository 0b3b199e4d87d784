/** A service that has outgrown its SQLite file takes everything with it. */
import { expect, it } from 'vitest';
import { writeEnvelope } from '../../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { readMessage } from '../../../../src/cloud/read-message.ts';
import { copyRows, isEmpty } from '../../../../src/cloud/sql/copy-rows.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';

const start_ms = Date.UTC(2026, 10, 21, 10);

onEachDatabase('What is copied from SQLite', (open) => {
  it('is all there, and the kit goes on where it was (infinidysk/infinidysk#1012)', async () => {
    const source = openSqlite(':memory:');
    const before = sqlStore(source);
    let seq = 0;
    const send = async (store: typeof before, channel: string, data: JsonObject, number = (seq += 1)) => {
      const text = writeEnvelope({ epoch: 1, seq: number, time_ms: start_ms }, JSON.stringify(data));
      const reception = readMessage(upTopic(kit_id, channel), Buffer.from(text));
      if (!reception) throw new Error(`no channel of the contract: ${channel}`);
      return store.commit([reception], start_ms);
    };
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
      async (store: typeof before) => store.kit(kit_id),
      async (store: typeof before) => store.keys(),
      async (store: typeof before) => store.assets(kit_id),
      async (store: typeof before) => store.feeds(kit_id, asset_id),
      async (store: typeof before) => store.alarms(query),
      async (store: typeof before) => store.acks(kit_id),
      async (store: typeof before) => (await store.historyArrivals(kit_id, 0)).landed.length,
    ])
      expect(await read(after)).toEqual(await read(before));
    await send(after, channels.feed(asset_id, 'feed1'), { n: 1 }, 4);
    expect((await after.kit(kit_id))?.counts.duplicates).toBe(1);
    expect(await database.all(`SELECT name FROM service WHERE name = 'history_leader'`)).toEqual([]);
    await source.close();
  });
});
