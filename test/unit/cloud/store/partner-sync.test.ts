/** Partner assets that the other side changed, too: which change counts, on each database. */
import { expect, it } from 'vitest';
import type { PartnerChange, PartnerRecord } from '../../../../src/contract/partners.ts';
import { jsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import { readMessage } from '../../../../src/cloud/read-message.ts';
import { partner_assets_max } from '../../../../src/cloud/store/partners.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { idOf, received, start_ms } from '../story.ts';

const record = (changed: Partial<PartnerRecord> = {}): PartnerRecord => ({
  id: asset_id,
  revision: 1,
  name: 'Truck',
  type: 'vehicle',
  vendor: null,
  model: null,
  metadata: {},
  parent_id: null,
  created_at: '2026-11-21T10:00:00.000Z',
  created_by: 'crew',
  ...changed,
});
const fix = (lat: number, timestamp: string): NonNullable<PartnerChange['fix']> => ({
  lat,
  lon: 8,
  alt_m: null,
  bearing: null,
  speed_mps: null,
  source: 'api',
  timestamp,
});
const iso = (after_ms: number): string => new Date(start_ms + after_ms).toISOString();

onEachDatabase('a partner asset of two services', (open) => {
  const openStore = async (): Promise<Store> => sqlStore(await open());
  let seq = 0;
  /** As the kit publishes it. */
  async function fromKit(store: Store, data: object | null): Promise<void> {
    seq += 1;
    const first = received({ channel: channels.partner(asset_id), seq, data: {} });
    const messages = first.messages.map((message) => ({
      ...message,
      data: data && jsonObject.parse({ ...data }),
    }));
    await store.commit([{ ...first, messages }], start_ms);
  }
  const nameOf = async (store: Store): Promise<string | undefined> =>
    (await store.asset(kit_id, asset_id))?.name;

  it('has the greater revision, and of equal ones that of the kit', async () => {
    const store = await openStore();
    await fromKit(store, record());
    await store.takePartner(kit_id, asset_id, { record: record({ revision: 3, name: 'Third' }) }, start_ms);
    expect(await nameOf(store)).toBe('Third');
    await fromKit(store, record({ revision: 2, name: 'Second' }));
    expect(await nameOf(store)).toBe('Third');
    await store.takePartner(kit_id, asset_id, { record: record({ revision: 3, name: 'Cloud' }) }, start_ms);
    expect(await nameOf(store)).toBe('Third');
    await fromKit(store, record({ revision: 3, name: 'Kit' }));
    expect(await nameOf(store)).toBe('Kit');
    expect(await store.partners(kit_id)).toMatchObject([
      { revision: 3, peer_revision: 3, gone: false, record: { created_by: 'crew' } },
    ]);
  });

  it('has each fix in the history at the time that it was measured, not pushed, whatever the order', async () => {
    const store = await openStore();
    await fromKit(store, record());
    const pushed = [5_000, 1_000].map((measured_ms, n) => {
      const data = jsonObject.parse({ ...fix(47 + n, iso(measured_ms)) });
      seq += 1;
      return received({ channel: channels.feed(asset_id, 'gps'), seq, data, time_ms: start_ms + 9_000 });
    });
    for (const reception of pushed) await store.commit([reception], start_ms + 10_000);
    const { messages } = await new HistoryOperations(store).messages(kit_id, {
      feed: 'gps',
      from_ms: start_ms,
      to_ms: start_ms + 60_000,
      order: 'asc',
      limit: 10,
    });
    expect(messages.map(({ time }) => time)).toEqual([iso(1_000), iso(5_000)]);
  });

  it('gets a separate revision for each of many changes at once, and none once it is removed', async () => {
    const store = await openStore();
    await fromKit(store, record());
    const changes = Array.from({ length: 5 }, async (_, n) =>
      store.changePartner(kit_id, asset_id, { metadata: { n } }),
    );
    expect(await Promise.all(changes)).toEqual([true, true, true, true, true]);
    expect(await store.partners(kit_id)).toMatchObject([
      { revision: 6, peer_revision: 1, record: { revision: 6, name: 'Truck', created_by: 'crew' } },
    ]);
    await store.removePartner(kit_id, asset_id);
    expect(await store.changePartner(kit_id, asset_id, { name: 'Ghost' })).toBe(false);
    expect(await store.partners(kit_id)).toMatchObject([{ revision: 7, gone: true }]);
  });

  it('is removed for good, whatever comes later', async () => {
    const store = await openStore();
    await fromKit(store, record());
    expect(await store.removePartner(kit_id, asset_id)).toBe(true);
    await fromKit(store, record({ revision: 9 }));
    expect(await store.assets(kit_id)).toEqual([]);
    expect(await store.partners(kit_id)).toMatchObject([
      { gone: true, revision: 2, peer_revision: 1, record: null },
    ]);
    await fromKit(store, null);
    expect(await store.partners(kit_id)).toMatchObject([{ gone: true, revision: 2, peer_revision: 2 }]);
  });

  it('has the newest fix: of the kit by epoch and seq, between the sides by time', async () => {
    const store = await openStore();
    await fromKit(store, record());
    const push = async (at: number, data: object, epoch = 17): Promise<void> => {
      const message = {
        channel: channels.feed(asset_id, 'gps'),
        seq: at,
        epoch,
        data: jsonObject.parse({ ...data }),
      };
      await store.commit([received(message)], start_ms + 60_000);
    };
    const latOf = async (): Promise<number | null | undefined> => (await store.asset(kit_id, asset_id))?.lat;
    await push(1_000, fix(1, iso(10_000)));
    await push(900, fix(2, iso(20_000)));
    expect(await latOf()).toBe(1);
    const record_now = record();
    await store.takePartner(
      kit_id,
      asset_id,
      { record: record_now, fix: fix(3, iso(15_000)) },
      start_ms + 60_000,
    );
    expect(await latOf()).toBe(3);
    await push(1_001, fix(4, iso(12_000)));
    expect(await latOf()).toBe(3);
    // A clock that is a day ahead blocks nothing that comes later.
    await push(1_002, fix(5, iso(86_400_000)));
    expect(await latOf()).toBe(5);
    await store.takePartner(
      kit_id,
      asset_id,
      { record: record_now, fix: fix(6, iso(61_000)) },
      start_ms + 61_000,
    );
    expect(await latOf()).toBe(6);
  });

  it('is refused beyond the limit of a kit, and where the record contradicts its topic', async () => {
    const store = await openStore();
    for (let n = 0; n < partner_assets_max; n += 1) {
      const id = idOf(n);
      await store.takePartner(kit_id, id, { record: record({ id }) }, start_ms);
    }
    await fromKit(store, record());
    const fromCloud = store.takePartner(kit_id, asset_id, { record: record() }, start_ms);
    await expect(fromCloud).rejects.toThrow(`at most ${partner_assets_max} partner assets`);
    await fromKit(store, record({ id: task_id }));
    expect(await store.assets(kit_id)).toHaveLength(partner_assets_max);
    expect((await store.kit(kit_id))?.counts.refused).toBe(2);
  });

  it('leaves the feeds of other assets alone', async () => {
    const store = await openStore();
    await store.commit(
      [received({ channel: channels.asset(asset_id), seq: 1, data: samples['announcement'] ?? {} })],
      start_ms,
    );
    const data = { ...fix(47, iso(0)) };
    await store.commit(
      [received({ channel: channels.feed(asset_id, 'gps'), seq: 2, data: jsonObject.parse({ ...data }) })],
      start_ms,
    );
    expect(await store.feeds(kit_id, asset_id)).toMatchObject([{ feed: 'gps', data: { lat: 47 } }]);
    expect(readMessage(`k1/${kit_id}/up/partner/${asset_id}`, Buffer.alloc(0))?.messages).toEqual([]);
  });
});
