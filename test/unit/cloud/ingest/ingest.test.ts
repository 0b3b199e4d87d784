/** What the service keeps of what kits publish, whatever the order in which it comes and however often. */
import * as fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { packBatch } from '../../../../src/contract/batch/pack.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { readMessage, type Reception } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { everything, gps, received, report, start_ms, story } from '../story.ts';

const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

function newStore(): Store {
  const store = sqlStore(openSqlite(':memory:'));
  open.push(store);
  return store;
}

it('comes to the same end in any order, in pieces of any size, with any number of repetitions', async () => {
  const wanted = newStore();
  await wanted.commit(story.map(received), start_ms);
  const { kit, ...rest } = await everything(wanted);
  const anyOrder = fc.shuffledSubarray([...story, ...story], { minLength: story.length * 2 });
  await fc.assert(
    fc.asyncProperty(anyOrder, fc.integer({ min: 1, max: 20 }), async (order, piece) => {
      const store = newStore();
      for (let at = 0; at < order.length; at += piece) {
        await store.commit(order.slice(at, at + piece).map(received), start_ms);
      }
      const now = await everything(store);
      expect({ ...now.kit, counts: undefined }).toEqual({ ...kit, counts: undefined });
      expect({ ...now, kit: undefined }).toEqual({ ...rest, kit: undefined });
      expect(now.kit?.counts).toEqual({
        received: story.length,
        duplicates: story.length,
        missing: 0,
        dropped: 0,
        refused: 0,
      });
    }),
    { numRuns: 30 },
  );
});

it('takes a batch from the buffer as the messages that it holds', async () => {
  const single = newStore();
  await single.commit(story.map(received), start_ms);
  const items = story.map(({ channel, seq, data }) => ({
    channel,
    epoch: 17,
    seq,
    time_ms: start_ms + seq,
    data: JSON.stringify(data),
  }));
  const packed = newStore();
  const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
  expect(reception).toMatchObject({ historical: true, faults: [] });
  await packed.commit(reception ? [reception] : [], start_ms);
  expect(await everything(packed)).toEqual(await everything(single));
});

it('orders presence by connections and not by time, since a will was written long before', async () => {
  const store = newStore();
  const state = (online: boolean, seq: number, time_ms: number): Reception =>
    received({
      channel: channels.state,
      seq,
      time_ms,
      data: { ...samples['kitState'], online, reason: online ? null : 'connection lost' },
    });
  await store.commit([state(true, 1, start_ms), state(true, 3, start_ms + 60_000)], start_ms);
  await store.commit([state(false, 2, start_ms)], start_ms);
  expect((await store.kit(kit_id))?.state?.online).toBe(true);
  await store.commit([state(false, 4, start_ms)], start_ms);
  expect((await store.kit(kit_id))?.state?.online).toBe(false);
});

it('lets a task end once, and never moves it back', async () => {
  const store = newStore();
  const step = (status: string, revision: number, seq: number): Reception =>
    received({ channel: channels.task(task_id), seq, data: report(status, revision) });
  await store.commit([step('failed', 3, 1)], start_ms);
  await store.commit([step('running', 2, 2), step('completed', 4, 3)], start_ms);
  expect(await store.task(kit_id, task_id)).toMatchObject({ status: 'failed', revision: 3 });
});

it('ignores what a later minor version has added', async () => {
  const store = newStore();
  await store.commit(
    [
      received({ channel: channels.telemetry, seq: 1, data: { battery: 5, fuel_pct: 3 } }),
      received({ channel: 'weather/now', seq: 2, data: {} }),
      received({
        channel: channels.asset(asset_id),
        seq: 3,
        data: { ...samples['announcement'], colour: 'red', type: 'boat' },
      }),
    ],
    start_ms,
  );
  const kit = await store.kit(kit_id);
  expect(kit?.parts['battery']?.data).toBe(5);
  expect(kit?.counts.refused).toBe(0);
  expect(await store.assets(kit_id)).toMatchObject([{ type: 'boat' }]);
});

it('counts what breaks the contract, keeps the rest of it, and lets no such message harm another kit', async () => {
  const store = newStore();
  const bad: Reception[] = [
    received({ channel: channels.telemetry, seq: 1, data: { battery: 200 } }),
    received({ channel: channels.asset(asset_id), seq: 2, data: { name: 'nameless' } }),
    received({ channel: channels.task(task_id), seq: 3, data: { ...report('running', 1), task_id: kit_id } }),
  ];
  const garbage = readMessage(upTopic(kit_id, channels.telemetry), Buffer.from('{"time":'));
  const bomb = readMessage(upTopic(kit_id, channels.batch), Buffer.from([0x78, 0x9c, 1, 2, 3]));
  const noId = readMessage(upTopic(kit_id, 'feed/../gps'), Buffer.from('{}'));
  for (const odd of [garbage, bomb, noId]) expect(odd?.faults).toHaveLength(1);
  const other = '11111111-2222-4333-8444-555555555555';
  const good = { ...received({ channel: channels.telemetry, seq: 1, data: { battery: 50 } }), kit_id: other };
  const odd = [garbage, bomb, noId].filter((each) => each !== undefined);
  await store.commit([...bad, ...odd, good], start_ms);
  expect((await store.kit(kit_id))?.counts).toMatchObject({ refused: 6, received: 3 });
  expect((await store.kit(other))?.parts['battery']?.data).toBe(50);
});

it('forgets an asset that was cleared, until it is announced again', async () => {
  const store = newStore();
  const announce = (seq: number): Reception =>
    received({ channel: channels.asset(asset_id), seq, data: samples['announcement'] ?? {} });
  await store.commit([announce(1)], start_ms);
  const cleared = readMessage(upTopic(kit_id, channels.asset(asset_id)), new Uint8Array());
  const { changes } = await store.commit(cleared ? [cleared] : [], start_ms);
  expect(changes).toEqual([{ kind: 'asset_gone', kit_id, asset_id }]);
  expect(await store.assets(kit_id)).toEqual([]);
  await store.commit([announce(1)], start_ms);
  expect(await store.assets(kit_id)).toEqual([]);
  await store.commit([announce(2)], start_ms);
  expect(await store.assets(kit_id)).toHaveLength(1);
});

it('takes a feed message for a sign of life that is newer than the announcement', async () => {
  const store = newStore();
  const announce = { channel: channels.asset(asset_id), seq: 1, data: samples['announcement'] ?? {} };
  await store.commit([received(announce), received({ ...gps(2, 47), time_ms: start_ms + 60_000 })], start_ms);
  expect((await store.asset(kit_id, asset_id))?.last_seen_at).toBe(new Date(start_ms + 60_000).toISOString());
});

it('counts what a kit gave up apart from what a newer value has replaced', async () => {
  const store = newStore();
  const drop = (reason: string, lo: number): JsonObject => ({
    epoch: 17,
    lane: 'feed',
    reason,
    rows: 2,
    lo,
    hi: lo + 1,
  });
  const data = { drops: [drop('evicted', 2), drop('superseded', 4)] };
  await store.commit([received(gps(1, 47)), received({ channel: channels.drops, seq: 6, data })], start_ms);
  expect((await store.kit(kit_id))?.counts).toMatchObject({ dropped: 2, missing: 0 });
});

it('never throws for any bytes on any topic', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(
        'state',
        'telemetry',
        'batch',
        'drops',
        `asset/${asset_id}`,
        `task/${task_id}`,
        'x/y/z/w',
      ),
      fc.uint8Array({ maxLength: 200 }),
      (channel, bytes) => {
        const reception = readMessage(upTopic(kit_id, channel), bytes);
        expect(reception?.kit_id).toBe(kit_id);
      },
    ),
  );
});
