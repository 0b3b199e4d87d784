/** What an erasure leaves alone, and what arrives after it: history of its time stays erased, and the state of now is never withheld. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { exportKit } from '../../../../src/cloud/history/transfer/export.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { addHook, divide, gps, historyOf, received, report, start_ms, truck } from '../story.ts';

const day_ms = 86_400_000;
const before_ms = start_ms + 3_600_000;
const now_ms = before_ms + 60_000;
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

const motion = (seq: number, time_ms: number, time_quality?: 'unsynced'): Reception => {
  const channel = channels.event(asset_id, 'motion');
  return received({ channel, seq, time_ms, time_quality, data: { detected: true } });
};

/** Numbers of the messages of the history, wherever they are read. */
async function seqsOf(store: Store): Promise<readonly number[]> {
  const seqs = (await historyOf(store)).filter(({ epoch }) => epoch > 0).map(({ seq }) => seq);
  const exported: string[] = [];
  for await (const lines of exportKit(store, kit_id, 0)) exported.push(lines);
  const inFile = Array.from(exported.join('').matchAll(/"epoch":17,"seq":(\d+)/gu), ([, seq]) => Number(seq));
  const sorted = seqs.sort((a, b) => a - b);
  expect(inFile.sort((a, b) => a - b)).toEqual(sorted);
  return sorted;
}

onEachDatabase('what arrives after an erasure', (open) => {
  const filled = async (id: string | undefined) => {
    const database = await open();
    const store = sqlStore(database);
    await store.addPartner(truck(asset_id));
    await addHook(store, { types: ['task.ended', 'alarm', 'kit.online', 'kit.offline'] });
    await store.commit([task(1, 'running', 1, start_ms)], start_ms);
    await store.eraseHistory({ kit_id, asset_id: id, before_ms }, before_ms);
    return { database, store };
  };
  const announced = async ({ database }: Awaited<ReturnType<typeof filled>>) =>
    (await database.all('SELECT type FROM webhook_messages ORDER BY time_ms, type')).map(({ type }) => type);

  it.each(erasures)(
    'ends a task by a report of before the erasure of %s, and announces it',
    async (_, id) => {
      const lab = await filled(id);
      await lab.store.commit([task(2, 'completed', 2, before_ms - 1)], now_ms);
      expect(await lab.store.task(kit_id, task_id)).toMatchObject({ status: 'completed', revision: 2 });
      expect(await announced(lab)).toEqual(['task.ended']);
      expect(await seqsOf(lab.store)).toEqual([]);
      await lab.store.eraseHistory({ kit_id, asset_id: id, before_ms: now_ms }, now_ms);
      expect(await lab.store.task(kit_id, task_id)).toMatchObject({ status: 'completed' });
      expect(await announced(lab)).toEqual(['task.ended']);
    },
  );

  it.each(erasures)('becomes the newest value after the erasure of %s, whatever its time', async (_, id) => {
    const { store } = await filled(id);
    await store.removePartner(kit_id, asset_id);
    const battery = received({ channel: channels.telemetry, seq: 3, data: { battery: 5 } });
    await store.commit([received(gps(2, 48)), battery], now_ms);
    expect(await store.feeds(kit_id, asset_id)).toMatchObject([{ feed: 'gps', data: { lat: 48 } }]);
    const known = await store.kit(kit_id);
    expect(known).toMatchObject({ parts: { battery: { data: 5 } }, counts: { received: 3, refused: 0 } });
    // A second erasure leaves both; of the kit's telemetry, an erasure of an asset takes nothing anyway.
    await store.eraseHistory({ kit_id, asset_id: id, before_ms: now_ms }, now_ms);
    expect(await store.feeds(kit_id, asset_id)).toHaveLength(1);
    expect((await store.kit(kit_id))?.parts).toEqual(known?.parts);
  });

  it.each(erasures)('moves a partner asset after the erasure of %s, whatever its time', async (_, id) => {
    const { store } = await filled(id);
    const known = async () => (await store.partners(kit_id))[0]?.fix?.time_ms;
    const { source: _source, ...fix } = pushed;
    const push = async (time_ms: number) => store.pushFixes(kit_id, [{ asset_id, fix, time_ms }], now_ms);
    expect(await push(before_ms - 9)).toMatchObject([{ isNewest: true }]);
    await store.commit([kitFix(2, before_ms - 8)], now_ms);
    expect(await known()).toBe(before_ms - 8);
    const record = { id: asset_id, revision: 9, name: 'Truck', type: 'truck', vendor: null, model: null };
    const more = { metadata: {}, parent_id: null, created_at: '2026-11-21T10:00:00.000Z', created_by: null };
    const timed = { ...pushed, timestamp: new Date(before_ms - 7).toISOString() };
    await store.takePartner(kit_id, asset_id, { record: { ...record, ...more }, fix: timed }, now_ms);
    expect(await known()).toBe(before_ms - 7);
    await divide(store, now_ms);
    expect((await historyOf(store)).filter(({ channel }) => channel.includes('gps'))).toEqual([]);
  });

  it.each(erasures)('is no alarm of before the erasure of %s, and any of after it', async (_, id) => {
    const { database, store } = await filled(id);
    await store.commit([motion(2, before_ms - 1), motion(3, before_ms)], now_ms);
    const rows = await database.all('SELECT time_ms FROM webhook_messages');
    expect(rows.map((row) => Number(row['time_ms']))).toEqual([before_ms]);
  });

  // The will of a kit has the time of its connect (emqx/emqx#10680), and a clock that was never set begins in 1970.
  it.each(erasures)(
    'is announced after the erasure of %s by a kit whose clock says nothing',
    async (_, id) => {
      const lab = await filled(id);
      const state = { ...samples['kitState'], online: false, reason: 'connection lost' };
      await lab.store.commit(
        [received({ channel: channels.state, seq: 2, data: state, time_ms: start_ms })],
        now_ms,
      );
      await lab.store.commit([motion(3, 5_000, 'unsynced')], now_ms);
      expect(await announced(lab)).toEqual(['alarm', 'kit.offline']);
    },
  );

  it.each(erasures)('is kept after the erasure of %s when a kit without a clock sent it', async (_, id) => {
    const { store } = await filled(id);
    await store.commit([motion(2, 5_000, 'unsynced')], now_ms);
    await store.commit([motion(3, before_ms - 500 * day_ms), motion(4, before_ms + 30 * day_ms)], now_ms);
    expect(await seqsOf(store)).toEqual([2, 3, 4]);
    await divide(store, now_ms);
    await store.commit([motion(5, 6_000, 'unsynced')], now_ms);
    await divide(store, now_ms);
    expect(await seqsOf(store)).toEqual([2, 3, 4, 5]);
    // Such messages count with their arrival: today's with the moment of the erasure, older ones with their day.
    await store.eraseHistory({ kit_id, asset_id: id, before_ms: now_ms - 1 }, now_ms);
    expect(await seqsOf(store)).toHaveLength(4);
    await store.eraseHistory({ kit_id, asset_id: id, before_ms: now_ms }, now_ms);
    expect(await seqsOf(store)).toEqual([]);
    await store.commit([motion(6, 7_000, 'unsynced')], now_ms);
    await divide(store, now_ms);
    expect(await seqsOf(store)).toEqual([6]);
  });
});

onEachDatabase('an erasure', (open) => {
  it('ahead of its time, of an earlier version, is cut to when it was asked for', async () => {
    const database = await open();
    const store = sqlStore(database);
    await store.commit([received(gps(1, 47))], start_ms);
    for (const [id, bound_ms] of [
      ['', Date.UTC(2127, 0)],
      [asset_id, start_ms - 1],
    ] as const)
      await database.all(
        'INSERT INTO history_erased (kit_id, asset_id, before_ms, erased_ms) VALUES (?, ?, ?, ?)',
        kit_id,
        id,
        bound_ms,
        start_ms,
      );
    await store.commit([received(gps(60_000, 48))], now_ms);
    expect(await seqsOf(store)).toEqual([]);
    const cut = { kit_id, asset_id: undefined, before_ms: start_ms, erased_ms: start_ms };
    expect(await store.mendErasures()).toEqual([cut]);
    expect(await store.mendErasures()).toEqual([]);
    expect(await store.historyErasures({ kit_id, limit: 9 })).toEqual([
      cut,
      { kit_id, asset_id, before_ms: start_ms - 1, erased_ms: start_ms },
    ]);
    expect(await seqsOf(store)).toEqual([1, 60_000]);
  });

  it('of a record that is imported has no bound ahead of the import', async () => {
    const store = sqlStore(await open());
    const record = {
      ...(await store.historyRecord(kit_id)),
      erased: [{ asset_id, before_ms: now_ms + day_ms }],
    };
    await store.importRecord(kit_id, record, now_ms);
    expect(await store.historyErasures({ kit_id, limit: 9 })).toMatchObject([{ before_ms: now_ms }]);
  });

  it('takes the newest values of an asset that was removed, and of no other', async () => {
    const database = await open();
    const store = sqlStore(database);
    const announcement = { ...samples['announcement'], id: asset_id };
    await store.commit(
      [received({ channel: channels.asset(asset_id), seq: 1, data: announcement })],
      start_ms,
    );
    await store.commit([received(gps(2, 47))], start_ms);
    await store.eraseHistory({ kit_id, asset_id, before_ms }, before_ms);
    expect(await store.feeds(kit_id, asset_id)).toHaveLength(1);
    await database.all('UPDATE assets SET gone = 1 WHERE kit_id = ?', kit_id);
    await store.eraseHistory({ kit_id, asset_id: undefined, before_ms }, before_ms);
    expect(await store.feeds(kit_id, asset_id)).toEqual([]);
  });
});
