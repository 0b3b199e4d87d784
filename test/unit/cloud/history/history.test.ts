/** Whatever the order of arrival, repetition and compaction, the history holds each accepted message once, in order. */
import { expect, it } from 'vitest';
import { jsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { byTime, history_classes, type HistoryMessage } from '../../../../src/cloud/history/message.ts';
import { newBudget } from '../../../../src/cloud/history/reading/reader.ts';
import { readPage } from '../../../../src/cloud/history/reading/page.ts';
import { readSeries } from '../../../../src/cloud/history/reading/series.ts';
import { readTrack } from '../../../../src/cloud/history/reading/track.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { seededRandom } from '../../../support/random.ts';
import { onEachDatabase } from '../each-database.ts';
import { batchOf, divide, historyOf, received, start_ms } from '../story.ts';

const hour_ms = 3_600_000;
const gps = channels.feed(asset_id, 'gps');
const battery = channels.feed(asset_id, 'battery');
const alarm = channels.event(asset_id, 'motion');

/** Three days of a kit, a message a minute: positions, batteries, alarms and telemetry in turn. */
const sent: readonly HistoryMessage[] = Array.from({ length: 4_320 }, (_, index) => {
  const channel = [gps, battery, gps, channels.telemetry, index % 100 === 4 ? alarm : gps][index % 5] ?? gps;
  const data = {
    [gps]: { lat: 47 + index / 1e4, lon: 8.5, alt_m: index % 7 === 0 ? null : 400 + (index % 50) },
    [battery]: { level: index % 101, charging: index % 2 === 0 },
    [alarm]: { active: index % 200 === 4 },
    [channels.telemetry]: { battery: index % 97 },
  }[channel];
  const time_ms = start_ms - 3 * 24 * hour_ms + index * 60_000;
  return { channel, epoch: 17, seq: index + 1, time_ms, unsynced: false, data: JSON.stringify(data) };
});

function loneOf({ channel, epoch, seq, time_ms, data }: HistoryMessage): Reception {
  return received({ channel, epoch, seq, time_ms, data: jsonObject.parse(JSON.parse(data)) });
}

/** Commits everything in random portions, a third of it twice, with compactions and figures between. */
async function play(store: Store, seed: number): Promise<void> {
  const generator = seededRandom(seed);
  const random = (): number => generator.below(1_000_000) / 1_000_000;
  const portions: (readonly HistoryMessage[])[] = [];
  for (let at = 0; at < sent.length;) {
    const size = random() < 0.3 ? 1 : 1 + Math.floor(random() * 400);
    portions.push(sent.slice(at, at + size));
    at += size;
  }
  const order = portions.map((portion) => ({ portion, key: random() })).sort((a, b) => a.key - b.key);
  for (const { portion } of order) {
    const receptions = portion.length === 1 ? portion.map(loneOf) : [batchOf(portion)];
    await store.commit(receptions, start_ms);
    if (random() < 0.3)
      await store.commit([batchOf(sent.slice(0, 1 + Math.floor(random() * 900)))], start_ms);
    if (random() < 0.2) await store.compactHistory(start_ms, random() < 0.5);
    if (random() < 0.1) await store.rollUpHistory(start_ms);
  }
}

const readAll = async (store: Store, order: 'asc' | 'desc'): Promise<HistoryMessage[]> =>
  historyOf(store, { order });

const everything = {
  kit_id,
  classes: history_classes,
  from_ms: 0,
  to_ms: start_ms + hour_ms,
  filter: {},
  isWanted: () => true,
} as const;

onEachDatabase('the history', (open) => {
  it.each([1, 2, 3])(
    'holds each message once and in order, before and after compaction (seed %i)',
    async (seed) => {
      const store = sqlStore(await open());
      await play(store, seed);
      const expected = [...sent].sort(byTime);
      expect(await readAll(store, 'asc')).toEqual(expected);
      await divide(store);
      expect(await store.historyLanded(kit_id)).toEqual([]);
      expect(await readAll(store, 'asc')).toEqual(expected);
      expect(await readAll(store, 'desc')).toEqual(expected.toReversed());
    },
  );

  it('holds what came again after its number was forgotten once, before and after compaction', async () => {
    const database = await open();
    const store = sqlStore(database);
    const some = sent.slice(0, 500);
    await store.commit([batchOf(some)], start_ms);
    await divide(store);
    while (await store.rollUpHistory(start_ms));
    // As beyond the limit of epochs and blocks: which numbers were received is not known any more.
    for (const table of ['received', 'received_blocks'])
      await database.all(`DELETE FROM ${table} WHERE kit_id = ?`, kit_id);
    const again = some.slice(100, 300);
    await store.commit([batchOf(again.slice(0, 150)), ...again.slice(150).map(loneOf)], start_ms);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 700, duplicates: 0 });
    expect(await readAll(store, 'asc')).toEqual(some);
    await divide(store);
    while (await store.rollUpHistory(start_ms));
    expect(await readAll(store, 'asc')).toEqual(some);
    expect(await readAll(store, 'desc')).toEqual(some.toReversed());
    const query = {
      kit_id,
      channel: battery,
      field: 'level',
      from_ms: 0,
      to_ms: start_ms,
      bucket_ms: hour_ms,
    };
    const series = await readSeries(store, query, newBudget());
    expect(series?.source).toBe('figures');
    expect(series?.buckets.reduce((sum, [, { n }]) => sum + n, 0)).toBe(
      some.filter(({ channel }) => channel === battery).length,
    );
  });

  it('gives the same figures from messages and from days', async () => {
    const store = sqlStore(await open());
    await play(store, 4);
    const query = {
      kit_id,
      channel: battery,
      field: 'level',
      from_ms: start_ms - 60 * hour_ms,
      to_ms: start_ms,
    };
    const bucket_ms = hour_ms;
    const before = await readSeries(store, { ...query, bucket_ms }, newBudget());
    await divide(store);
    while (await store.rollUpHistory(start_ms));
    const after = await readSeries(store, { ...query, bucket_ms }, newBudget());
    expect(after?.source).toBe('figures');
    expect(after?.buckets).toEqual(before?.buckets);
    const expected = sent.filter(
      ({ channel, time_ms }) => channel === battery && time_ms >= query.from_ms && time_ms < query.to_ms,
    );
    expect(after?.buckets.reduce((sum, [, { n }]) => sum + n, 0)).toBe(expected.length);
    const [first] = after?.buckets ?? [];
    const inFirst = expected.filter(
      ({ time_ms }) => Math.floor(time_ms / bucket_ms) * bucket_ms === first?.[0],
    );
    const levels = inFirst.map(({ data }) => Number(jsonObject.parse(JSON.parse(data))['level']));
    expect(first?.[1]).toMatchObject({
      min: Math.min(...levels),
      max: Math.max(...levels),
      last: levels.at(-1),
    });
  });

  it('makes the figures of a day again when a late message arrives', async () => {
    const store = sqlStore(await open());
    const late = sent.filter(({ channel }) => channel === battery);
    await store.commit([batchOf(late.slice(1))], start_ms);
    await divide(store);
    while (await store.rollUpHistory(start_ms));
    const query = {
      kit_id,
      channel: battery,
      field: 'level',
      from_ms: late[0]?.time_ms ?? 0,
      to_ms: start_ms,
      bucket_ms: hour_ms,
    };
    const countOf = async () =>
      (await readSeries(store, query, newBudget()))?.buckets.reduce((sum, [, { n }]) => sum + n, 0);
    const before = await countOf();
    await store.commit(late.slice(0, 1).map(loneOf), start_ms);
    expect(await countOf()).toBe((before ?? 0) + 1);
    await divide(store);
    expect(await countOf()).toBe((before ?? 0) + 1);
    while (await store.rollUpHistory(start_ms));
    expect(await countOf()).toBe((before ?? 0) + 1);
  });

  it('pages through everything with a cursor, also while compaction moves what is behind it', async () => {
    const store = sqlStore(await open());
    await store.commit([batchOf(sent.slice(0, 2_000)), batchOf(sent.slice(2_000))], start_ms);
    const query = { ...everything, order: 'asc', limit: 777 } as const;
    const seen: HistoryMessage[] = [];
    let cursor: string | undefined;
    do {
      const page = await readPage(store, { ...query, cursor }, newBudget());
      seen.push(...page.messages);
      cursor = page.next ?? undefined;
      await store.compactHistory(start_ms, true);
    } while (cursor !== undefined);
    expect(seen).toEqual([...sent].sort(byTime));
    await expect(
      readPage(store, { ...query, order: 'desc', cursor: 'bm9uc2Vuc2U' }, newBudget()),
    ).rejects.toMatchObject({ kind: 'bad-request' });
  });

  it.each(['asc', 'desc'] as const)(
    'pages through everything also when the time of a page is over before its first message, %s',
    async (order) => {
      const store = sqlStore(await open());
      // The segments of the classes overlap: the first message is known only when one of each was read.
      await store.commit([batchOf(sent)], start_ms);
      await divide(store);
      const seen: HistoryMessage[] = [];
      let cursor: string | undefined;
      do {
        const page = await readPage(
          store,
          { ...everything, order, limit: 777, cursor },
          { ...newBudget(), until_ms: -Infinity },
        );
        seen.push(...page.messages);
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      const expected = [...sent].sort(byTime);
      expect(seen).toEqual(order === 'asc' ? expected : expected.toReversed());
    },
  );

  it('draws the way of an asset as lines between gaps', async () => {
    const store = sqlStore(await open());
    await store.commit([batchOf(sent.filter(({ seq }) => seq <= 1_000 || seq > 1_100))], start_ms);
    const query = { kit_id, asset_id, from_ms: 0, to_ms: start_ms, gap_ms: 600_000, tolerance_m: 0 };
    const whole = await readTrack(store, query, newBudget());
    expect(whole?.lines).toHaveLength(2);
    const fixes = sent.filter(({ channel, seq }) => channel === gps && (seq <= 1_000 || seq > 1_100));
    expect(whole?.fixes).toBe(fixes.length);
    // It flew straight on: two points of each line are enough.
    const thin = await readTrack(store, { ...query, tolerance_m: 5 }, newBudget());
    expect(thin?.lines.map((line) => line.length)).toEqual([2, 2]);
  });
});
