/** A database of schema version 1, which knew no history: opened once, it has what it had, and keeps the history from then on. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { history_classes } from '../../../../src/service/history/message.ts';
import { newBudget, readHistory } from '../../../../src/service/history/reading/reader.ts';
import { openSqlite } from '../../../../src/service/store/sql/sqlite.ts';
import { added_columns, schema_version } from '../../../../src/service/store/sql/tables.ts';
import { SqlStore } from '../../../../src/service/store/sql-store.ts';
import { texts } from '../../../../src/service/texts.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { everything, gps, received, start_ms, story } from '../story.ts';

/** Takes away what later versions have added. */
function makeOld(file: string): void {
  const connection = new Sqlite(file);
  const names = connection
    .prepare<[], { type: string; name: string }>(
      "SELECT type, name FROM sqlite_schema WHERE name LIKE 'history%' OR name LIKE 'webhook%' OR name = 'tasks_due'",
    )
    .all();
  for (const type of ['index', 'table'])
    for (const each of names.filter((found) => found.type === type))
      connection.exec(`DROP ${type} ${each.name}`);
  for (const { table, column } of added_columns)
    connection.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
  connection.pragma('user_version = 1');
  connection.close();
}

it('keeps what a database of version 1 has, and keeps the history from then on', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    const first = new SqlStore(openSqlite(file));
    await first.commit(story.map(received), start_ms);
    const before = await everything(first);
    await first.close();
    makeOld(file);
    const store = new SqlStore(openSqlite(file));
    try {
      const { kit, tasks, ...rest } = await everything(store);
      expect({ ...rest, kit: kit?.parts }).toEqual({
        assets: before.assets,
        commands: before.commands,
        feeds: before.feeds,
        acks: before.acks,
        kit: before.kit?.parts,
      });
      expect(tasks.map(({ status }) => status)).toEqual(before.tasks.map(({ status }) => status));
      await store.commit([...story.map(received), received(gps(11, 47.3))], start_ms);
      expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 11, duplicates: 10 });
      const seqs: number[] = [];
      const stretch = { kit_id, classes: history_classes, from_ms: 0, to_ms: start_ms + 1_000 } as const;
      for await (const { seq } of readHistory(store, { ...stretch, order: 'asc' }, newBudget()))
        seqs.push(seq);
      // Messages of before were acknowledged and not kept.
      expect(seqs).toEqual([11]);
    } finally {
      await store.close();
    }
  });
});

it('refuses a database of a later version, and leaves it as it is', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    await openSqlite(file).close();
    const later = schema_version + 1;
    const connection = new Sqlite(file);
    connection.pragma(`user_version = ${later}`);
    expect(() => openSqlite(file)).toThrow(texts.later_version_file(later));
    expect(connection.pragma('user_version', { simple: true })).toBe(later);
    connection.close();
  });
});
