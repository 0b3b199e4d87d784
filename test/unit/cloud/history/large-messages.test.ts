/** Much history and large messages of one kit: what is held in memory and done in one turn is bounded, and nothing is lost by it. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { pass_chars_max, segment_chars_max } from '../../../../src/cloud/history/compactor.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import { page_chars_max } from '../../../../src/cloud/history/reading/reader.ts';
import { messagesOf } from '../../../../src/cloud/history/segment.ts';
import { history_classes } from '../../../../src/cloud/history/message.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { divide, received } from '../story.ts';

const chars = 250_000;
/** More than two passes read. */
const count = Math.ceil((2.5 * pass_chars_max) / chars);
const now_ms = Date.UTC(2026, 10, 20, 12);

let store: Store;
beforeEach(async () => {
  store = sqlStore(openSqlite(':memory:'));
  await store.beginHistory(now_ms);
});
afterEach(async () => store.close());

const message = (seq: number, text: string, feed = 'blob'): Reception =>
  received({ channel: channels.feed(asset_id, feed), seq, data: { text }, time_ms: now_ms + seq });

const largeMessage = (seq: number): Reception => message(seq, 'x'.repeat(chars));

async function segments() {
  const found = await store.historySegments({
    kit_id,
    classes: history_classes,
    from_ms: 0,
    to_ms: now_ms * 2,
    order: 'asc',
    after: undefined,
    limit: 100,
  });
  return Promise.all(found.map(async ({ body }) => messagesOf(body)));
}

/** How many turns of the event loop others had meanwhile. */
async function turnsDuring<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly turns: number }> {
  let turns = 0;
  let isDone = false;
  const count_turn = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count_turn);
  };
  setImmediate(count_turn);
  const value = await work();
  isDone = true;
  return { value, turns };
}

async function pages(order: 'asc' | 'desc'): Promise<readonly (readonly number[])[]> {
  const history = new HistoryOperations(store);
  const found: number[][] = [];
  let cursor: string | undefined;
  do {
    const span = { from_ms: 0, to_ms: now_ms * 2, from: 0, to: now_ms * 2 };
    const page = await history.messages(kit_id, { ...span, order, limit: 5_000, cursor });
    found.push(page.messages.map(({ seq }) => seq));
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return found;
}

const numbers = (messages: number): readonly number[] =>
  Array.from({ length: messages }, (_, index) => index + 1);

it(
  'reads large messages in pages that fit into memory, each message once, asc and desc',
  { tags: 'long', timeout: 300_000 },
  async () => {
    const messages = Math.ceil((3.5 * page_chars_max) / chars);
    // In an order that is neither of them.
    const shuffled = numbers(messages).toSorted((a, b) => ((a * 7) % 13) - ((b * 7) % 13));
    for (let at = 0; at < messages; at += 8)
      await store.commit(shuffled.slice(at, at + 8).map(largeMessage), now_ms);
    const most = Math.ceil(page_chars_max / chars);
    for (const isDivided of [false, true]) {
      if (isDivided) await divide(store, now_ms);
      for (const order of ['asc', 'desc'] as const) {
        const wanted = order === 'asc' ? numbers(messages) : numbers(messages).toReversed();
        const found = await pages(order);
        expect(Math.max(...found.map((each) => each.length))).toBeLessThanOrEqual(most);
        expect(found.flat()).toEqual(wanted);
      }
    }
  },
);

it('lets others have a turn while it reads much', async () => {
  for (let seq = 1; seq <= 4_000; seq += 100) {
    const some = Array.from({ length: 100 }, (_, index) => message(seq + index, '1'));
    await store.commit(some, now_ms);
  }
  const found = await turnsDuring(async () => pages('desc'));
  expect(found.value.flat()).toHaveLength(4_000);
  expect(found.turns).toBeGreaterThanOrEqual(12);
});

it('lets others have a turn while it makes figures of many channels', async () => {
  const feeds = 200;
  await store.commit(
    Array.from({ length: feeds }, (_, index) => message(index + 1, '1', `feed${index}`)),
    now_ms,
  );
  await divide(store, now_ms);
  const made = await turnsDuring(async () => store.rollUpHistory(now_ms + 86_400_000));
  expect(made.value).toBe(true);
  // Once when a channel is read, and once when its figures are packed.
  expect(made.turns).toBeGreaterThanOrEqual(2 * feeds);
});

it('makes and joins segments that are read in a short turn, of many messages of medium size too', async () => {
  const some_chars = 5_000;
  for (let seq = 1; seq <= 1_200; seq += 50) {
    const some = Array.from({ length: 50 }, (_, index) => message(seq + index, 'x'.repeat(some_chars)));
    await store.commit(some, now_ms);
    if (seq % 200 === 1) await divide(store, now_ms);
  }
  await divide(store, now_ms);
  const found = await segments();
  const sizes = found.map((each) => each.reduce((sum, { data }) => sum + data.length, 0));
  expect(Math.max(...sizes)).toBeLessThan(600_000);
  // Small ones were joined.
  expect(found.length).toBeLessThan(24);
  expect(found.flatMap((each) => each.map(({ seq }) => seq)).toSorted((a, b) => a - b)).toEqual(
    numbers(1_200),
  );
});

it(
  'divides large messages in portions, into segments that fit into memory, each message once',
  { tags: 'long' },
  async () => {
    for (let seq = 1; seq <= count; seq += 1) await store.commit([largeMessage(seq)], now_ms + seq);
    const portions: number[] = [];
    for (let divided = 1; divided > 0;) {
      divided = await store.compactHistory(now_ms + count, true);
      portions.push(divided);
    }
    expect(Math.max(...portions)).toBeLessThanOrEqual(Math.ceil(pass_chars_max / chars));
    const most = Math.ceil(segment_chars_max / chars);
    const divided = await segments();
    expect(Math.max(...divided.map((each) => each.length))).toBeLessThanOrEqual(most);
    expect(divided.flatMap((each) => each.map(({ seq }) => seq))).toEqual(numbers(count));
    expect(await store.historyLanded(kit_id)).toEqual([]);
  },
);
