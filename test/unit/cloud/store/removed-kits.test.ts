/** Kits that operators remove for good: nothing of them is left, and what the broker keeps of them does not bring them back. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { kit_tables } from '../../../../src/cloud/store/removed-kits.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { addHook, received, start_ms } from '../story.ts';

const other_kit = '22222222-2222-4222-8222-222222222222';
const state = (online: boolean): JsonObject => ({
  ...samples['kitState'],
  online,
  reason: online ? null : 'lost',
});

async function start(database: Database) {
  const store = sqlStore(database);
  let seq = 0;
  const send = async (channel: string, data: JsonObject | null, { kit = kit_id, retained = false } = {}) => {
    seq += 1;
    return store.commit([received({ kit, channel, seq, data, time_ms: start_ms, retained })], start_ms);
  };
  const live = async (kit: string): Promise<void> => {
    await send(channels.state, state(true), { kit });
    await send(channels.telemetry, { battery: 5, battery_charging: false }, { kit });
    await send(channels.asset(asset_id), samples['announcement'] ?? {}, { kit });
    await send(channels.feed(asset_id, 'gps'), { lat: 47, lon: 8 }, { kit });
    await send(channels.event(asset_id, 'motion'), { detected: true }, { kit });
  };
  const left = async (kit: string): Promise<readonly string[]> => {
    const counted = kit_tables.map(async (name) => {
      const rows = await database.all(`SELECT 1 AS here FROM ${name} WHERE kit_id = ?`, kit);
      return rows.length > 0 ? [name] : [];
    });
    return (await Promise.all(counted)).flat();
  };
  return { store, send, live, left };
}

onEachDatabase('Kits that are removed', (open) => {
  it('leave nothing but what tells webhooks the end of their alarms', async () => {
    const database = await open();
    const { store, live, left } = await start(database);
    const rights = { label: 'ops', scopes: ['read'], kits: [kit_id, other_kit], expires_ms: null };
    await store.addKey(makeKey(rights, start_ms).key);
    await addHook(store, { types: ['alarm', 'battery'], kits: [kit_id, other_kit] });
    await live(kit_id);
    await live(other_kit);
    await store.setKitLabel(kit_id, { name: 'Old kit', tags: [] });
    const others = await left(other_kit);
    expect(await left(kit_id)).toEqual(others);
    expect(await store.removeKit(kit_id, start_ms)).toEqual([{ kind: 'kit_gone', kit_id }]);
    expect(await left(kit_id)).toEqual([]);
    expect(await left(other_kit)).toEqual(others);
    expect(await store.kitIds()).toEqual([other_kit]);
    const keys = await store.keys();
    expect(new Set(keys.map(({ kits }) => kits))).toEqual(new Set([[other_kit], '*']));
    const [webhook] = await store.webhooks();
    expect(webhook?.kits).toEqual([other_kit]);
    const { accepted = 0, waiting = 0, purged = 0 } = webhook?.counts ?? {};
    const rows = await database.all('SELECT body FROM webhook_messages WHERE kit_id = ?', kit_id);
    expect(rows).toHaveLength(1);
    const told: unknown = JSON.parse(String(rows[0]?.['body']));
    expect(told).toMatchObject({ type: 'battery', data: { change: 'closed' } });
    expect([purged, waiting]).toEqual([2, accepted - 2]);
    const named = await database.all(`SELECT name FROM service WHERE name LIKE '%${kit_id}%'`);
    expect(named).toEqual([{ name: `removed ${kit_id}` }]);
  });

  it('do not come back with what the broker keeps of them, and come back with what they send (NorthernMan54/homebridge-tasmota#9)', async () => {
    const database = await open();
    const { store, send, live, left } = await start(database);
    await live(kit_id);
    await store.removeKit(kit_id, start_ms);
    const kept = { retained: true };
    await send(channels.state, state(true), kept);
    await send(channels.state, state(false), kept);
    await send(channels.asset(asset_id), samples['announcement'] ?? {}, kept);
    await send(channels.state, state(false));
    const { new_kits, changes } = await send(channels.asset(asset_id), null);
    expect([new_kits, changes, await left(kit_id)]).toEqual([[], [], []]);
    await store.lookAtAlarms(start_ms + 7_200_000);
    expect(await store.kitIds()).toEqual([]);
    expect((await send(channels.telemetry, { battery: 80 })).new_kits).toEqual([kit_id]);
    expect((await store.kit(kit_id))?.counts.received).toBe(1);
    await send(channels.asset(asset_id), samples['announcement'] ?? {}, kept);
    expect(await store.assets(kit_id)).toHaveLength(1);
  });
});
