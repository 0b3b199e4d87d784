/** Which numbers count as stored: those that came and no others, however many are missing between them. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { gps, received, start_ms } from '../story.ts';

const epoch = 17;
/** Numbers of one commit. */
const group = 500;

onEachDatabase('the numbers that were received', (open) => {
  /** Changes nothing but the count, so that many of them cost little. */
  const edge = (seq: number) => received({ channel: channels.event(asset_id, 'link_status'), seq, data: {} });

  async function commitAll(store: Store, seqs: readonly number[], size = group): Promise<void> {
    for (let at = 0; at < seqs.length; at += size) {
      const some = seqs.slice(at, at + size).map(edge);
      await store.commit(some, start_ms + at);
    }
  }

  async function ranges(store: Store, of = epoch) {
    const acks = await store.acks(kit_id);
    return acks.find((ack) => ack.epoch === of)?.ranges ?? [];
  }

  it(
    'hold no number that did not come, though every second one of 30,000 is missing',
    { tags: 'long' },
    async () => {
      const store = sqlStore(await open());
      const even = Array.from({ length: 15_000 }, (_, n) => 2 * n + 2);
      await commitAll(store, even, 1_000);
      const named = await ranges(store);
      expect(named.filter(([first, last]) => first !== last || first % 2 === 1)).toEqual([]);
      expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 15_000, missing: 14_999 });
      // The ones between them come late, and each of them is new.
      await commitAll(
        store,
        even.map((seq) => seq - 1),
        1_000,
      );
      expect(await ranges(store)).toEqual([[1, 30_000]]);
      expect((await store.kit(kit_id))?.counts).toMatchObject({
        received: 30_000,
        duplicates: 0,
        missing: 0,
      });
    },
  );

  it('are acknowledged exactly, in any order and grouping, also when they come again', async () => {
    const number = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 4_000, max: 13_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(number, { maxLength: 120 }),
        fc.integer({ min: 1, max: 50 }),
        async (seqs, size) => {
          const store = sqlStore(await open());
          const acknowledged = new Set<number>();
          for (let at = 0; at < seqs.length; at += size) {
            const some = seqs.slice(at, at + size);
            const { acks } = await store.commit(
              some.map((seq) => received(gps(seq, 47))),
              start_ms + at,
            );
            const named = new Set(
              acks.flatMap(({ ack }) => ack.ranges.flatMap(([first, last]) => numbers(first, last))),
            );
            expect(some.filter((seq) => !named.has(seq))).toEqual([]);
            for (const seq of named) acknowledged.add(seq);
          }
          expect([...acknowledged].sort(byValue)).toEqual([...new Set(seqs)].sort(byValue));
          const stored = (await ranges(store)).flatMap(([first, last]) => numbers(first, last));
          expect(stored).toEqual([...acknowledged].sort(byValue));
        },
      ),
      { numRuns: 6 },
    );
  });

  it(
    'cost a commit no more when there are many of them: 75,000 with every second missing',
    { tags: 'long' },
    async () => {
      const bytes: number[] = [];
      const counting = countWrites(await open(), (written) => bytes.push(written));
      const store = sqlStore(counting);
      await commitAll(
        store,
        Array.from({ length: 37_500 }, (_, n) => 2 * n + 2),
      );
      expect(bytes).toHaveLength(75);
      // 500 numbers lie in two blocks at most, and a block is 684 characters at most.
      expect(Math.max(...bytes)).toBeLessThan(2_500);
    },
  );

  it('name what has just come, wherever it lies, and the same again when it comes again', async () => {
    const store = sqlStore(await open());
    await commitAll(
      store,
      Array.from({ length: 4_000 }, (_, n) => 2 * n + 2),
      2_000,
    );
    for (const _ of ['first', 'again']) {
      const { acks } = await store.commit([received(gps(1_000_000, 1)), received(gps(500_001, 1))], start_ms);
      const named = acks.flatMap(({ ack }) => ack.ranges);
      expect(named).toContainEqual([1_000_000, 1_000_000]);
      expect(named).toContainEqual([500_001, 500_001]);
    }
    expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 4_002, duplicates: 2 });
  });

  it('are forgotten beyond the limit and never assumed: what was touched least recently goes, and may count twice', async () => {
    const store = sqlStore(await open());
    const block = 4_096;
    const scattered = Array.from({ length: 300 }, (_, n) => n * block + 7);
    await store.commit([received(gps(7, 47))], start_ms - 1);
    await commitAll(store, scattered.slice(1), 50);
    const named = await ranges(store);
    expect(named).toHaveLength(256);
    expect(named.every(([first, last]) => first === last && scattered.includes(first))).toBe(true);
    expect(named.at(-1)).toEqual([scattered.at(-1), scattered.at(-1)]);
    const before = (await store.kit(kit_id))?.counts;
    expect(before).toMatchObject({ received: 300, missing: 299 * block - 299 });
    // It comes again, is stored again, and changes nothing that a client sees but the count.
    const feeds = await store.feeds(kit_id, asset_id);
    expect(feeds).toHaveLength(1);
    const { acks } = await store.commit([received(gps(7, 47))], start_ms);
    expect(acks.flatMap(({ ack }) => ack.ranges)).toContainEqual([7, 7]);
    expect(await store.feeds(kit_id, asset_id)).toEqual(feeds);
  });

  it('continue from what an earlier version had stored', async () => {
    const database = await open();
    const store = sqlStore(database);
    const write = 'INSERT INTO received (kit_id, epoch, ranges) VALUES (?, ?, ?)';
    await database.all(write, kit_id, epoch, '[[1,5000],[5002,5002],[9000,9001]]');
    await commitAll(store, [5_001, 5_002, 1, 9_002]);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 2, duplicates: 2, missing: 3_997 });
    expect(await ranges(store)).toEqual([
      [1, 5_002],
      [9_000, 9_002],
    ]);
  });

  it('are never joined over a hole when an earlier version had stored more ranges than are kept', async () => {
    const database = await open();
    const store = sqlStore(database);
    const block = 4_096;
    const before = Array.from({ length: 1_200 }, (_, n): [number, number] => [
      2 * n * block + 1,
      2 * n * block + 9,
    ]);
    const write = 'INSERT INTO received (kit_id, epoch, ranges) VALUES (?, ?, ?)';
    await database.all(write, kit_id, epoch, JSON.stringify(before));
    const whole = numbers(block + 1, 2 * block);
    await commitAll(store, whole, block);
    const named = await ranges(store);
    expect(named.length).toBeLessThan(1_002);
    const known = new Set([...before, [block + 1, 2 * block]].map(String));
    const merged = String([block + 1, 2 * block + 9]);
    expect(named.map(String).filter((range) => range !== merged && !known.has(range))).toEqual([]);
  });

  const drops = (seq: number, of: number, rows: number) =>
    received({
      channel: channels.drops,
      seq,
      epoch: 18,
      data: { drops: [{ epoch: of, lane: 'feed', reason: 'evicted', rows, lo: 1, hi: 1_000_000 }] },
    });
  const later = (seq: number) => received({ ...gps(seq, 47), epoch: 18 });

  it('are missing in one epoch though more of another one were dropped', async () => {
    const store = sqlStore(await open());
    await commitAll(store, [1, 2, 11]);
    await store.commit([drops(1, epoch, 8), later(2), later(5)], start_ms);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ dropped: 8, missing: 2 });
    // More was dropped of the first epoch than is missing there: the holes of the second stay.
    await store.commit([drops(6, epoch, 500)], start_ms);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ dropped: 508, missing: 2 });
    await store.commit([drops(7, 18, 2)], start_ms);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ dropped: 510, missing: 0 });
  });

  it('are not missing where the report of what was dropped came before the rest of its epoch', async () => {
    const store = sqlStore(await open());
    await store.commit([drops(1, epoch, 3)], start_ms);
    expect((await store.acks(kit_id)).map((ack) => ack.epoch)).toEqual([18]);
    await commitAll(store, [1, 5]);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ dropped: 3, missing: 0 });
  });

  it('are counted with all that was dropped where an earlier version has stored the epoch', async () => {
    const database = await open();
    const store = sqlStore(database);
    await commitAll(store, [1, 11]);
    await store.commit([drops(1, epoch, 4), later(2), later(4)], start_ms);
    await database.all('UPDATE received SET dropped = NULL WHERE epoch = ?', epoch);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ missing: 6 });
    await store.commit([drops(5, epoch, 5)], start_ms);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ missing: 1 });
  });

  it('are of no more epochs than are kept, whatever a report names', async () => {
    const database = await open();
    const store = sqlStore(database);
    const named = Array.from({ length: 300 }, (_, n) => ({
      epoch: n + 1,
      lane: 'feed',
      reason: 'expired',
      rows: 1,
      lo: 1,
      hi: 1,
    }));
    const data = { drops: named };
    await store.commit([received({ channel: channels.drops, seq: 1, epoch: 250, data })], start_ms);
    const rows = await database.all('SELECT epoch FROM received WHERE kit_id = ?', kit_id);
    expect(rows).toHaveLength(64);
    // A report is never about a later epoch than its own.
    expect(await store.newestEpoch(kit_id)).toBe(250);
    expect((await store.acks(kit_id)).map((ack) => ack.epoch)).toEqual([250]);
  });

  it('of the epochs that were touched last are kept when a kit has started very often', async () => {
    const store = sqlStore(await open());
    const epochs = Array.from({ length: 70 }, (_, n) => n + 1);
    for (const each of epochs) {
      const { acks } = await store.commit([received({ ...gps(1, 47), epoch: 71 - each })], start_ms + each);
      expect(acks).toMatchObject([{ ack: { epoch: 71 - each, ranges: [[1, 1]] } }]);
    }
    const kept = (await store.acks(kit_id)).map((ack) => ack.epoch);
    expect(kept).toEqual(epochs.slice(0, 64).reverse());
  });
});

function numbers(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

function byValue(a: number, b: number): number {
  return a - b;
}

/** Tells for each transaction how many characters it wrote about received numbers. */
function countWrites(database: Database, told: (characters: number) => void): Database {
  return {
    ...database,
    transactionAhead: async (work) =>
      database.transaction(async (queries) => {
        let characters = 0;
        const value = await work({
          all: async (sql, ...values) => {
            if (/(?:INTO|UPDATE|FROM) received/u.test(sql) && !sql.startsWith('SELECT'))
              characters += values.reduce<number>((sum, each) => sum + String(each).length, 0);
            return queries.all(sql, ...values);
          },
        });
        told(characters);
        return value;
      }),
  };
}
