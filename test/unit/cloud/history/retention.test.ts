/** What the history deletes: by class and age, and by the size of a kit. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { classOf, history_classes, type HistoryClass } from '../../../../src/cloud/history/message.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import type { Retention } from '../../../../src/cloud/history/retention.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id } from '../../../support/contract-samples.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { onEachDatabase } from '../each-database.ts';
import { divide, historyOf, received, start_ms } from '../story.ts';

const day_ms = 86_400_000;
const days = 10;
const channel_of: Readonly<Record<HistoryClass, string>> = {
  event: channels.event(asset_id, 'motion'),
  position: channels.feed(asset_id, 'gps'),
  feed: channels.feed(asset_id, 'battery'),
  kit: channels.telemetry,
};
const lasting: Retention = {
  days: { event: 400, position: 400, feed: 400, kit: 400 },
  figures_days: 400,
};

/** A message of each class on each of the last days, divided and summed up. */
async function fill(store: Store, kit_ids: readonly string[], last_day = days): Promise<void> {
  for (let day = 1; day <= last_day; day += 1) {
    const time_ms = start_ms - day * day_ms;
    const sent = history_classes.map((each, at) =>
      received({
        channel: channel_of[each],
        seq: day * 4 + at,
        data: { lat: 1, lon: 2, battery: day },
        time_ms,
      }),
    );
    await store.commit(
      kit_ids.flatMap((kit_id) => sent.map((reception) => ({ ...reception, kit_id }))),
      time_ms,
    );
    await divide(store);
  }
  while (await store.rollUpHistory(start_ms));
}

/** By class: how many days ago its messages are that are left. */
async function leftOf(store: Store, kit_id: string): Promise<Readonly<Record<string, number[]>>> {
  const left: Record<string, number[]> = {};
  for (const { channel, time_ms } of await historyOf(store, { kit: kit_id, order: 'desc' }))
    (left[classOf(channel)] ??= []).push((start_ms - time_ms) / day_ms);
  return left;
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

onEachDatabase('the retention', (open) => {
  it('deletes each class after its own days, of every kit, and figures after theirs', async () => {
    const database = await open();
    const store = sqlStore(database);
    const kit_ids = [randomUUID(), randomUUID()];
    await fill(store, kit_ids);
    const retention = { days: { event: 9, position: 3, feed: 5, kit: 7 }, figures_days: 6 };
    while ((await store.trimHistory(retention, start_ms)) > 0);
    for (const kit_id of kit_ids)
      expect(await leftOf(store, kit_id)).toEqual({
        event: upTo(9),
        position: upTo(3),
        feed: upTo(5),
        kit: upTo(7),
      });
    const [figures] = await database.all('SELECT COUNT(DISTINCT day) AS days FROM history_days');
    expect(Number(figures?.['days'])).toBe(6);
  });

  it('deletes the oldest of a kit beyond its size: feeds first, then positions, never events, and nothing of others', async () => {
    const database = await open();
    const store = sqlStore(database);
    const [large, small] = [randomUUID(), randomUUID()];
    await fill(store, [large]);
    await fill(store, [small], 2);
    const rows = await database.all(
      'SELECT class, SUM(bytes) AS bytes FROM history WHERE kit_id = ? GROUP BY class',
      large,
    );
    const bytes = new Map(rows.map((row) => [String(row['class']), Number(row['bytes'])]));
    const all = [...bytes.values()].reduce((sum, each) => sum + each, 0);
    const half = Math.ceil((bytes.get('position') ?? 0) / 2);
    const kit_bytes_max = all - (bytes.get('feed') ?? 0) - half;
    while ((await store.trimHistory({ ...lasting, kit_bytes_max }, start_ms)) > 0);
    const { position = [], ...left } = await leftOf(store, large);
    expect(left).toEqual({ event: upTo(days), kit: upTo(days) });
    expect(position).toEqual(upTo(position.length));
    expect(position.length).toBeGreaterThan(0);
    expect(position.length).toBeLessThan(days);
    const { oldest } = await new HistoryOperations(store).completeness(large);
    const daysAgo = (age: number): string => new Date(start_ms - age * day_ms).toISOString();
    expect(oldest).toEqual({
      event: daysAgo(days),
      position: daysAgo(position.length),
      feed: null,
      kit: daysAgo(days),
    });
    const sizes = await store.historySizes();
    expect(sizes.find(({ kit_id }) => kit_id === large)?.bytes).toBeLessThanOrEqual(kit_bytes_max);
    expect(await leftOf(store, small)).toEqual({
      event: [1, 2],
      position: [1, 2],
      feed: [1, 2],
      kit: [1, 2],
    });
  });
});

it('deletes what landed first where more waits in memory than may, and divides the rest', async () => {
  const store = sqlStore(openSqlite(':memory:'));
  const kit_id = randomUUID();
  for (let seq = 1; seq <= 30; seq += 1) {
    const time_ms = start_ms - day_ms + seq;
    const reception = received({ channel: channel_of.feed, seq, data: { level: seq }, time_ms });
    await store.commit([{ ...reception, kit_id }], time_ms);
  }
  expect(await store.limitLanded(10)).toBe(20);
  expect(await store.limitLanded(10)).toBe(0);
  await divide(store);
  const seqs = (await historyOf(store, { kit: kit_id })).map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from({ length: 10 }, (_, index) => 21 + index));
  await store.close();
});
