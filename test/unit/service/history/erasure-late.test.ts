/** What was observed before an erasure and arrives after it, of every kind: it stays erased. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { makeKey } from '../../../../src/service/access/principal.ts';
import { history_classes } from '../../../../src/service/history/message.ts';
import { newBudget, readHistory } from '../../../../src/service/history/reading/reader.ts';
import { SqlStore } from '../../../../src/service/store/sql-store.ts';
import { asset_id, kit_id, task_id } from '../../../support/contract-samples.ts';
import { registeredWebhook } from '../../../support/service/registered-webhook.ts';
import { onEachDatabase } from '../each-database.ts';
import { received, report, start_ms } from '../story.ts';

const before_ms = start_ms + 3_600_000;
const now_ms = before_ms + 60_000;
const webhook_id = '00000000-0000-4000-8000-000000000001';
const erasures = [
  ['an asset', asset_id],
  ['the kit', undefined],
] as const;

const task = (seq: number, status: string, revision: number, time_ms: number) =>
  received({ channel: channels.task(task_id), seq, data: report(status, revision), time_ms });

const pushed = { lat: 47, lon: 8, alt_m: null, bearing: null, speed_mps: null, source: 'partner' };

/** A fix that was pushed at the kit's own service. */
const kitFix = (seq: number, fix_ms: number) =>
  received({
    channel: channels.feed(asset_id, 'gps'),
    seq,
    data: { ...pushed, timestamp: new Date(fix_ms).toISOString() },
    time_ms: now_ms,
  });

const motion = (seq: number, time_ms: number) =>
  received({ channel: channels.event(asset_id, 'motion'), seq, data: { detected: true }, time_ms });

async function addPartner(store: SqlStore): Promise<void> {
  const type = { asset_key: `${kit_id}:partner:${asset_id}`, type: 'truck', vendor: null, model: null };
  const about = { name: 'Truck', metadata: {}, parent_id: null, created_by: 'test', created_ms: start_ms };
  await store.addPartner({ kit_id, asset_id, ...type, ...about });
}

async function addWebhook(store: SqlStore): Promise<void> {
  const { key } = makeKey({ label: 'test', scopes: ['webhooks'], kits: '*', expires_ms: null }, start_ms);
  await store.addKey(key);
  await store.addWebhook(
    registeredWebhook({
      webhook_id,
      url: 'https://app.example.com/hook',
      types: ['task.ended', 'alarm'],
      kits: [kit_id],
      key_id: key.key_id,
      created_ms: start_ms,
    }),
  );
}

onEachDatabase('what arrives after an erasure', (open) => {
  const filled = async (id: string | undefined) => {
    const database = await open();
    const store = new SqlStore(database);
    await addPartner(store);
    await addWebhook(store);
    await store.commit([task(1, 'running', 1, start_ms)], start_ms);
    await store.eraseHistory({ kit_id, asset_id: id, before_ms }, before_ms);
    return { database, store };
  };
  const status = async (store: SqlStore) => (await store.task(kit_id, task_id))?.status;

  it.each(erasures)('keeps a task whose end of before the erasure of %s comes late erased', async (_, id) => {
    const { database, store } = await filled(id);
    expect(await status(store)).toBe('running');
    const committed = await store.commit([task(2, 'completed', 2, before_ms - 1)], now_ms);
    expect(await status(store)).toBeUndefined();
    expect(committed.changes).toEqual([]);
    expect(await database.all('SELECT id FROM webhook_messages')).toEqual([]);
    // A report that was on its way as well.
    await store.commit([task(3, 'running', 1, before_ms - 2)], now_ms);
    expect(await status(store)).toBeUndefined();
    expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 3, refused: 0 });
  });

  it.each(erasures)('takes no progress of before the erasure of %s, and any of after it', async (_, id) => {
    const { store } = await filled(id);
    const progress = { message: 'erased', pct: 5 };
    const late = { ...report('running', 2), progress };
    await store.commit(
      [received({ channel: channels.task(task_id), seq: 2, data: late, time_ms: before_ms - 1 })],
      now_ms,
    );
    expect(await store.task(kit_id, task_id)).toMatchObject({
      status: 'running',
      revision: 1,
      progress: null,
    });
    await store.commit([task(3, 'completed', 3, before_ms)], now_ms);
    expect(await status(store)).toBe('completed');
  });

  it.each(erasures)('takes no fix of before the erasure of %s, and any of after it', async (_, id) => {
    const { store } = await filled(id);
    const known = async () => (await store.partners(kit_id))[0]?.fix?.time_ms;
    const { source: _source, ...fix } = pushed;
    const push = async (time_ms: number) => store.pushFixes(kit_id, [{ asset_id, fix, time_ms }], now_ms);
    expect(await push(before_ms - 1)).toMatchObject([{ isNewest: false }]);
    expect(await known()).toBeUndefined();
    await store.commit([kitFix(2, before_ms - 1)], now_ms);
    expect(await known()).toBeUndefined();
    const record = { id: asset_id, revision: 9, name: 'Truck', type: 'truck', vendor: null, model: null };
    const more = { metadata: {}, parent_id: null, created_at: '2026-11-21T10:00:00.000Z', created_by: null };
    const timed = { ...pushed, timestamp: new Date(before_ms - 1).toISOString() };
    await store.takePartner(kit_id, asset_id, { record: { ...record, ...more }, fix: timed }, now_ms);
    expect(await known()).toBeUndefined();
    while ((await store.compactHistory(now_ms, true)) > 0);
    const stretch = { kit_id, classes: history_classes, from_ms: 0, to_ms: now_ms, order: 'asc' } as const;
    for await (const { channel } of readHistory(store, stretch, newBudget()))
      expect(channel).not.toContain('gps');
    expect(await push(before_ms)).toMatchObject([{ isNewest: true }]);
    expect(await known()).toBe(before_ms);
    await store.commit([kitFix(3, before_ms + 1)], now_ms);
    expect(await known()).toBe(before_ms + 1);
  });

  it.each(erasures)(
    'takes a fix of an asset that it does not know, of before the erasure of %s, for erased',
    async (_, id) => {
      const { store } = await filled(id);
      await store.removePartner(kit_id, asset_id);
      await store.commit([kitFix(2, before_ms - 1)], now_ms);
      expect(await store.feeds(kit_id, asset_id)).toEqual([]);
    },
  );

  it.each(erasures)('announces no alarm of before the erasure of %s, and any of after it', async (_, id) => {
    const { database, store } = await filled(id);
    await store.commit([motion(2, before_ms - 1), motion(3, before_ms)], now_ms);
    const rows = await database.all('SELECT time_ms FROM webhook_messages');
    expect(rows.map((row) => Number(row['time_ms']))).toEqual([before_ms]);
  });
});
