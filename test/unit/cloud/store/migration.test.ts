/** A database of schema version 1, which knew no history: opened once, it has what it had, and keeps the history from then on. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../../src/cloud/sql/postgres.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { schema } from '../../../../src/cloud/sql/schema.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { peerMissing } from '../../../support/peers.ts';
import { clientOf, type Postgres, startPostgres } from '../../../support/database/postgres.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { everything, gps, historyOf, received, start_ms, story } from '../story.ts';

const added_columns = schema.steps
  .flatMap(({ adds }) => adds)
  .filter((each) => each.kind === 'column')
  .filter(({ table }) => !/^(?:webhooks|history|alarms)/u.test(table));

/** Takes away what later versions have added. */
function makeOld(file: string): void {
  const connection = new Sqlite(file);
  const names = connection
    .prepare<[], { type: string; name: string }>(
      "SELECT type, name FROM sqlite_schema WHERE name LIKE 'history%' OR name LIKE 'webhook%' OR name LIKE 'alarms%' OR name = 'tasks_due'",
    )
    .all();
  for (const type of ['index', 'table'])
    for (const each of names.filter((found) => found.type === type))
      connection.exec(`DROP ${type} ${each.name}`);
  for (const { table, name } of added_columns) connection.exec(`ALTER TABLE ${table} DROP COLUMN ${name}`);
  connection.pragma('user_version = 1');
  connection.close();
}

/** The same on PostgreSQL. */
async function makeOldServer(url: string): Promise<void> {
  const client = new Client(clientOf(url));
  await client.connect();
  try {
    const { rows } = await client.query<{ readonly tablename: string }>(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND (tablename LIKE 'history%' OR tablename LIKE 'webhook%' OR tablename = 'alarms')",
    );
    for (const { tablename } of rows) await client.query(`DROP TABLE ${tablename}`);
    await client.query('DROP INDEX tasks_due');
    for (const { table, name } of added_columns)
      await client.query(`ALTER TABLE ${table} DROP COLUMN ${name}`);
    await client.query("UPDATE service SET value = '1' WHERE name = 'schema_version'");
  } finally {
    await client.end();
  }
}

/** What a database has that `makeItOld` has made one of version 1, is there. Returns the numbers of the history that it has from then on. */
async function historyAfter(
  open: () => Promise<Database>,
  makeItOld: () => void | Promise<void>,
): Promise<readonly number[]> {
  const first = sqlStore(await open());
  await first.commit(story.map(received), start_ms);
  const before = await everything(first);
  await first.close();
  await makeItOld();
  const store = sqlStore(await open());
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
    return (await historyOf(store)).map(({ seq }) => seq);
  } finally {
    await store.close();
  }
}

it('keeps what a database of version 1 has, and keeps the history from then on', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    const seqs = await historyAfter(
      async () => openSqlite(file),
      () => makeOld(file),
    );
    // Messages of before were acknowledged and not kept.
    expect(seqs).toEqual([11]);
  });
});

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))('on PostgreSQL', () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server?.stop());

  it('keeps what a database of version 1 has, and keeps the history from then on', async () => {
    const { url, password } = server;
    const seqs = await historyAfter(
      async () => openPostgres({ url, password }),
      async () => makeOldServer(url),
    );
    expect(seqs).toEqual([11]);
  });

  it('refuses a database of a later version, and leaves it as it is', async () => {
    const url = await server.newDatabase('later');
    const open = async (): Promise<Database> => openPostgres({ url, password: server.password });
    const database = await open();
    const later = schema.version + 1;
    await database.all(
      "UPDATE service SET value = ? WHERE name IN ('schema_version', 'writers_from')",
      String(later),
    );
    await expect(open()).rejects.toThrow(texts.later_version_database(later));
    expect(await database.all("SELECT value FROM service WHERE name = 'schema_version'")).toEqual([
      { value: String(later) },
    ]);
    await database.close();
  });
});

it('adds what later releases added to version 2, with the deadlines of tasks that wait', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    await openSqlite(file).close();
    const connection = new Sqlite(file);
    connection.exec(
      'DROP INDEX tasks_due; ALTER TABLE tasks DROP COLUMN due_ms; DROP TABLE webhooks; DROP TABLE alarms',
    );
    connection.pragma('user_version = 2');
    connection.exec(
      `INSERT INTO tasks (kit_id, task_id, asset_id, command_name, payload, status, revision, result, requested_by, created_ms,
         updated_ms) VALUES ('kit', 'task', 'asset', 'arm', '{}', 'pending', 0, '{}', 'user', 1000, 1000)`,
    );
    connection.close();
    const database = openSqlite(file);
    expect(await database.all('SELECT due_ms FROM tasks')).toEqual([{ due_ms: 901_000 }]);
    expect(await database.all('SELECT * FROM webhooks')).toEqual([]);
    await database.close();
  });
});

it('refuses a database of a later version, and leaves it as it is', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    await openSqlite(file).close();
    const later = schema.version + 1;
    const connection = new Sqlite(file);
    connection.pragma(`user_version = ${later}`);
    expect(() => openSqlite(file)).toThrow(texts.later_version_file(later));
    expect(connection.pragma('user_version', { simple: true })).toBe(later);
    connection.close();
  });
});
