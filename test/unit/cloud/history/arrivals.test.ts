/**
 * The order of arrival: whoever polls with its cursor gets each message once, also what comes late and what is stored, divided and joined
 * meanwhile. Cursors by the time of observation skip late data (ironfish-api#980, superlog#252), cursors by numbers that are given before
 * the commit skip what commits later (hydra#496, patchlevel/event-sourcing#615, OpenMetadata#29958), those by the time alone what
 * has the same (ax#980), and the clocks of two writers differ (apache/hive#1728).
 */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import { page_chars_max } from '../../../../src/cloud/history/reading/reader.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { batchOf, divide, received, start_ms } from '../story.ts';

const other_kit = '2b671a64-40d5-591e-99b0-da01ff1f3342';
const day_ms = 86_400_000;
const always = {
  from_ms: Number.MIN_SAFE_INTEGER,
  to_ms: Number.MAX_SAFE_INTEGER,
  order: 'arrival',
} as const;
const inTurn = async <T>(part: () => Promise<T>): Promise<T> => part();

const event = (seq: number, time_ms: number, { kit = kit_id, data = {} } = {}): Reception =>
  received({ channel: channels.event(asset_id, 'blob'), seq, time_ms, kit, data });

const batch = (first: number, messages: number): Reception =>
  batchOf(
    Array.from({ length: messages }, (_, at) => ({
      channel: at % 3 === 0 ? channels.event(asset_id, 'blob') : channels.feed(asset_id, 'gps'),
      seq: first + at,
      // Of several days, so that it is divided into several segments.
      time_ms: start_ms - (at % 4) * day_ms + at,
      data: JSON.stringify({ lat: 47, lon: 8, alt_m: at }),
    })),
  );

/** A client that polls: it keeps the cursor, and asks again at once while there is more. */
class Poller {
  readonly seqs: number[] = [];
  readonly arrivals: string[] = [];
  cursor: string | undefined;
  readonly #history: HistoryOperations;
  readonly #limit: number;

  constructor(store: Store, limit: number) {
    this.#history = new HistoryOperations(store);
    this.#limit = limit;
  }

  async poll(): Promise<void> {
    for (;;) {
      const filter = { ...always, limit: this.#limit, cursor: this.cursor };
      const { messages, next, more } = await this.#history.messages(kit_id, filter);
      this.seqs.push(...messages.map(({ seq }) => seq));
      this.arrivals.push(...messages.map(({ arrived_at = '' }) => arrived_at));
      this.cursor = next ?? undefined;
      if (more !== true) return;
    }
  }
}

/** Something happens right after the first call of this method. */
function interrupted(
  store: Store,
  method: 'historyArrivals' | 'historyArrivedSegments',
  meanwhile: () => Promise<void>,
): Store {
  let isFirst = true;
  const after = async <T>(answer: T): Promise<T> => {
    if (isFirst) {
      isFirst = false;
      await meanwhile();
    }
    return answer;
  };
  return method === 'historyArrivals'
    ? { ...store, historyArrivals: async (...asked) => after(await store.historyArrivals(...asked)) }
    : {
        ...store,
        historyArrivedSegments: async (...asked) => after(await store.historyArrivedSegments(...asked)),
      };
}

const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from }, (_, at) => from + at);

onEachDatabase('the order of arrival', (open) => {
  const opened = async (): Promise<{ store: Store; database: Database }> => {
    const database = await open();
    const store = sqlStore(database);
    await store.beginHistory(start_ms);
    return { store, database };
  };

  it('gives what comes late to who has read all before, each message once', async () => {
    const { store } = await opened();
    const poller = new Poller(store, 7);
    await store.commit(
      numbers(1, 51).map((seq) => event(seq, start_ms)),
      start_ms,
    );
    await poller.poll();
    expect(poller.seqs).toEqual(numbers(1, 51));
    // One of the same millisecond, one of ten days before, one of a clock that is three days ahead.
    await store.commit([event(51, start_ms), event(52, start_ms - 10 * day_ms)], start_ms);
    await store.commit([event(53, start_ms + 3 * day_ms)], start_ms);
    await poller.poll();
    await poller.poll();
    expect(poller.seqs).toEqual([...numbers(1, 51), 52, 51, 53]);
    await divide(store);
    await poller.poll();
    expect(poller.seqs).toHaveLength(53);
    const again = new Poller(store, 7);
    await again.poll();
    expect(again.seqs).toEqual(poller.seqs);
    expect(again.arrivals).toEqual(again.arrivals.toSorted());
  });

  it('skips and doubles nothing while two replicas store and others divide', async () => {
    const { store, database } = await opened();
    // The second one is behind by a minute.
    const replicas = [store, sqlStore(database)].map((each, at) => ({
      each,
      now_ms: start_ms - at * 60_000,
    }));
    const poller = new Poller(store, 30);
    const rounds = 6;
    const storing = new AbortController();
    const whileStoring = async (work: () => Promise<unknown>): Promise<void> => {
      while (!storing.signal.aborted) {
        await work();
        await new Promise(setImmediate);
      }
    };
    const others = [
      whileStoring(async () => sqlStore(database).compactHistory(start_ms, true)),
      whileStoring(async () => poller.poll()),
    ];
    const stored = replicas.map(async ({ each, now_ms }, replica) => {
      for (let round = 0; round < rounds; round += 1) {
        const first = 1 + (round * 2 + replica) * 100;
        const lone = numbers(first, first + 20).map((seq) => event(seq, start_ms - (seq % 5) * day_ms));
        await each.commit([...lone, batch(first + 20, 80)], now_ms + round);
      }
    });
    await Promise.all(stored);
    storing.abort();
    await Promise.all(others);
    await poller.poll();
    expect(poller.seqs.toSorted((a, b) => a - b)).toEqual(numbers(1, rounds * 200 + 1));
    expect(poller.arrivals).toEqual(poller.arrivals.toSorted());
  });

  it('waits for what is stored before something that it sees already', async () => {
    const { store, database } = await opened();
    await store.commit([event(1, start_ms)], start_ms);
    // While a page is read, two replicas store; the clock of the second one is behind, so that its messages are divided first, and alone.
    const meanwhile = async (): Promise<void> => {
      await store.commit([event(2, start_ms)], start_ms + 2);
      await sqlStore(database).commit([batch(10, 2_500)], start_ms + 1);
      await sqlStore(database).compactHistory(start_ms, true);
      expect(await database.all('SELECT id FROM history_in')).toHaveLength(1);
    };
    const poller = new Poller(interrupted(store, 'historyArrivals', meanwhile), 5_000);
    await poller.poll();
    await poller.poll();
    expect(poller.seqs.toSorted((a, b) => a - b)).toEqual([1, 2, ...numbers(10, 2_510)]);
  });

  it('reads a page again whose segments are joined while it is read', async () => {
    const { store, database } = await opened();
    const divided = async (seq: number): Promise<void> => {
      await store.commit([event(seq, start_ms + seq)], start_ms + seq);
      await store.compactHistory(start_ms, true);
    };
    for (const seq of numbers(1, 8)) await divided(seq);
    expect(await database.all('SELECT id FROM history')).toHaveLength(7);
    const joined = async (): Promise<void> => {
      await divided(8);
      expect(await database.all('SELECT id FROM history')).toHaveLength(1);
    };
    const poller = new Poller(interrupted(store, 'historyArrivedSegments', joined), 5);
    await poller.poll();
    await poller.poll();
    expect(poller.seqs).toEqual(numbers(1, 9));
  });

  it('gives the events of several kits once, also of one whose commit ends after that of another', async () => {
    const { store, database } = await opened();
    const history = new HistoryOperations(store);
    const found: string[] = [];
    let cursor: string | undefined;
    const poll = async (limit: number): Promise<void> => {
      for (;;) {
        const filter = { ...always, limit, cursor };
        const page = await history.fleetEvents([kit_id, other_kit], filter, inTurn);
        found.push(...page.events.map((each) => `${each.kit_id} ${Number(each.data['n'])}`));
        cursor = page.next ?? undefined;
        if (page.more !== true) return;
      }
    };
    const of = (kit: string, from: number, to: number): Reception[] =>
      numbers(from, to).map((n) => event(n, start_ms, { kit, data: { n } }));
    await store.commit([...of(kit_id, 1, 6), ...of(other_kit, 1, 6)], start_ms);
    await poll(3);
    expect(found).toHaveLength(10);
    // One kit has stored with a later clock, and was read, before the other one stores with an earlier one.
    await store.commit(of(kit_id, 6, 11), start_ms + 60_000);
    await poll(2);
    await sqlStore(database).commit(of(other_kit, 6, 11), start_ms + 1_000);
    await poll(2);
    const wanted = [kit_id, other_kit].flatMap((kit) => numbers(1, 11).map((n) => `${kit} ${n}`));
    expect(found.toSorted()).toEqual(wanted.toSorted());
  });

  it('gives each of one commit once, whose data is more than a page may hold', { tags: 'long' }, async () => {
    const { store } = await opened();
    const text = 'x'.repeat(200_000);
    const receptions = numbers(1, Math.ceil((3.5 * page_chars_max) / text.length)).map((seq) =>
      event(seq, start_ms + seq, { data: { text } }),
    );
    await store.commit(receptions, start_ms);
    const poller = new Poller(store, 5_000);
    await poller.poll();
    expect(poller.seqs).toEqual(numbers(1, receptions.length + 1));
  });

  it('begins at a time of arrival, and leaves out what an earlier version stored', async () => {
    const { store, database } = await opened();
    await store.commit([event(1, start_ms)], start_ms);
    await database.all('UPDATE history_in SET arrived_ms = 0');
    await store.commit([event(2, start_ms)], start_ms + 1_000);
    await store.commit([event(3, start_ms - day_ms)], start_ms + 2_000);
    const history = new HistoryOperations(store);
    const seqsOf = async (arrived_from?: number) =>
      (await history.messages(kit_id, { ...always, limit: 10, arrived_from })).messages.map(({ seq }) => seq);
    const both = async (): Promise<unknown> => [await seqsOf(), await seqsOf(start_ms + 2_000)];
    expect(await both()).toEqual([[2, 3], [3]]);
    await divide(store);
    expect(await both()).toEqual([[2, 3], [3]]);
  });
});
