/** An erasure that meets the compactor, the figures of days and late messages half-way. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { bodyOf, messagesOf } from '../../../../src/cloud/history/segment.ts';
import { compactKit } from '../../../../src/cloud/history/compactor.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { batchOf, divide, start_ms } from '../story.ts';

const other_id = '2b671a64-40d5-591e-99b0-da01ff1f3342';
const before_ms = start_ms + 3_600_000;
const erasure = { kit_id, asset_id, before_ms };

/** So many messages about each of two assets. */
const batch = (first: number, messages: number): Reception =>
  batchOf(
    Array.from({ length: messages }, (_, at) => {
      const [seq, id] = [first + at, at % 2 === 0 ? asset_id : other_id];
      const data = JSON.stringify({ lat: 47, lon: 8, alt_m: seq });
      return { channel: channels.feed(id, 'gps'), seq, time_ms: start_ms + seq, data };
    }),
  );

/** How many messages about the erased asset, and about the other one, the tables of the history have. */
async function left(database: Database): Promise<readonly [erased: number, kept: number]> {
  const rows = [
    ...(await database.all('SELECT body FROM history')),
    ...(await database.all('SELECT body FROM history_in')),
  ];
  const all = (await Promise.all(rows.map(async (row) => messagesOf(bodyOf(row))))).flat();
  const erased = all.filter(({ channel }) => channel.includes(asset_id));
  return [erased.length, all.length - erased.length];
}

/** Calls `meanwhile` before the transaction of this number begins. */
function interrupted(database: Database, at: number, meanwhile: () => Promise<unknown>): Database {
  let count = 0;
  return {
    ...database,
    transaction: async (work) => {
      count += 1;
      if (count === at) await meanwhile();
      return database.transaction(work);
    },
  };
}

onEachDatabase('an erasure', (open) => {
  it('is seen by a replica that compacts with the tombstones of before', async () => {
    const database = await open();
    const store = sqlStore(database);
    await store.commit([batch(1, 200)], start_ms);
    await store.eraseHistory(erasure, before_ms);
    await store.commit([batch(1_001, 200)], start_ms);
    const stale = { now_ms: start_ms, tombstones: new Map() };
    expect(await compactKit(database, kit_id, stale)).toBe(0);
    await divide(store);
    expect(await left(database)).toEqual([0, 200]);
  });

  it('leaves nothing landed behind when another replica divides the same messages first', async () => {
    const database = await open();
    const others = sqlStore(database);
    for (let n = 0; n < 6; n += 1) await others.commit([batch(1 + n * 1_000, 1_000)], start_ms);
    // The second transaction of the erasure is its first one that divides.
    const meeting = interrupted(database, 2, async () => others.compactHistory(start_ms, true));
    await sqlStore(meeting).eraseHistory(erasure, before_ms);
    expect(await left(database)).toEqual([0, 3_000]);
  });

  it('stores nothing twice when the compactor joins the segments that it is about to rewrite', async () => {
    const database = await open();
    const store = sqlStore(database);
    for (let n = 0; n < 7; n += 1) {
      await store.commit([batch(1 + n * 100, 100)], start_ms);
      await store.compactHistory(start_ms, true);
    }
    const joining = async (): Promise<void> => {
      await store.commit([batch(5_001, 100)], start_ms);
      await store.compactHistory(start_ms, true);
    };
    await sqlStore(interrupted(database, 2, joining)).eraseHistory(erasure, before_ms);
    await divide(store);
    expect(await left(database)).toEqual([0, 400]);
  });

  it('leaves no figures when a day is summed up meanwhile', async () => {
    const database = await open();
    const store = sqlStore(database);
    await store.commit([batch(1, 200)], start_ms);
    await store.compactHistory(start_ms, true);
    const later_ms = start_ms + 2 * 86_400_000;
    const meeting = interrupted(database, 1, async () => store.eraseHistory(erasure, before_ms));
    await sqlStore(meeting).rollUpHistory(later_ms);
    const figures = async () =>
      (await database.all('SELECT channel FROM history_days')).map((row) => row['channel']);
    expect(await figures()).toEqual([]);
    while (await store.rollUpHistory(later_ms));
    expect(await figures()).toEqual([channels.feed(other_id, 'gps')]);
  });
});
