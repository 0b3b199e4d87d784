/** A kit whose messages are each of another day or epoch makes a segment of each: dividing them must not keep the database from others. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import type { Database, Queries } from '../../../../src/cloud/sql/database.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id } from '../../../support/contract-samples.ts';
import { batchOf, start_ms } from '../story.ts';

const day_ms = 86_400_000;
const scattered = 250;
/** Statements of one turn of the event loop of the thread, outside transactions. */
const statements_of_turn_max = 8;

const batch = (placeOf: (index: number) => { readonly epoch: number; readonly time_ms: number }): Reception =>
  batchOf(
    Array.from({ length: scattered }, (_, index) => ({
      channel: channels.feed(asset_id, 'battery'),
      seq: index + 1,
      data: '{"level":1}',
      ...placeOf(index),
    })),
  );

/** Counts the statements between two turns of the event loop. */
function counted(database: Database) {
  const counts = { statements: 0, of_turn: 0, of_turn_max: 0 };
  const all: Queries['all'] = async (sql, ...values) => {
    counts.statements += 1;
    counts.of_turn += 1;
    counts.of_turn_max = Math.max(counts.of_turn_max, counts.of_turn);
    setImmediate(() => (counts.of_turn = 0));
    return database.all(sql, ...values);
  };
  return { database: { ...database, all }, counts };
}

it.each([
  ['days', (index: number) => ({ epoch: 17, time_ms: start_ms - index * day_ms }), 150],
  ['epochs', (index: number) => ({ epoch: index + 1, time_ms: start_ms }), 450],
])(
  'messages of hundreds of %s are divided with few statements, and others have their turn between them',
  async (_, placeOf, statements_max) => {
    const sqlite = openSqlite(':memory:');
    const { database, counts } = counted(sqlite);
    const store = sqlStore(database);
    for (const round of [0, 1]) {
      const { messages, ...rest } = batch(placeOf);
      const others = messages.map((message) => ({ ...message, seq: message.seq + round * scattered }));
      await store.commit([{ ...rest, packed: undefined, messages: others }], start_ms);
      Object.assign(counts, { statements: 0, of_turn_max: 0 });
      expect(await store.compactHistory(start_ms, true)).toBe(scattered);
      expect(counts.of_turn_max).toBeLessThanOrEqual(statements_of_turn_max);
      expect(counts.statements).toBeLessThan(statements_max);
    }
    const [stored] = await sqlite.all('SELECT SUM(messages) AS messages FROM history');
    expect(stored).toEqual({ messages: 2 * scattered });
    await store.close();
  },
);
