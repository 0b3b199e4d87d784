/** Transactions on a real PostgreSQL whose connections end in the middle, and whose rows others hold. */
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  InvariantBroken,
  messageOf,
  StorageBusy,
  StorageUnavailable,
} from '../../../../src/platform/errors.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing } from '../../../support/peers.ts';
import { clientOf, type Postgres, startPostgres } from '../../../support/database/postgres.ts';
import { gps, received, start_ms, startIngest } from '../story.ts';
import { texts } from '../../../../src/cloud/texts.ts';

async function waitersIn(client: Client): Promise<number> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows.length;
}

const add = 'INSERT INTO kits (kit_id) VALUES (?)';

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))('a transaction on PostgreSQL', () => {
  let server: Postgres;
  let url: string;
  let database: Database;
  let databases = 0;
  const others: Client[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const other of others.splice(0)) await other.end();
    await database?.close();
  });
  afterAll(async () => server?.stop());

  async function open(): Promise<void> {
    databases += 1;
    url = await server.newDatabase(`kits_${databases}`);
    database = await openPostgres({ url, password: server.password });
  }

  /** Another client that holds the row of the kit until it is told to let go. */
  async function hold(kit: string): Promise<Client> {
    const other = new Client(clientOf(url));
    other.on('error', () => undefined);
    others.push(other);
    await other.connect();
    await other.query('BEGIN');
    await other.query(
      'INSERT INTO kits (kit_id) VALUES ($1) ON CONFLICT (kit_id) DO UPDATE SET kit_id = $1',
      [kit],
    );
    return other;
  }

  it('is done again as a whole when its connection ends between two statements', async () => {
    await open();
    let attempts = 0;
    await database.transaction(async (queries) => {
      attempts += 1;
      await queries.all(add, kit_id);
      if (attempts === 1) await server.cutConnections();
      await queries.all(add, task_id);
    });
    expect(attempts).toBe(2);
    expect(await database.all('SELECT kit_id FROM kits')).toHaveLength(2);
  });

  it('is not done again when the connection ends in its COMMIT: it is unknown whether it was done', async () => {
    await open();
    await database.all(
      'CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$',
    );
    await database.all(
      'CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON kits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut()',
    );
    let attempts = 0;
    const done = database.transaction(async (queries) => {
      attempts += 1;
      await queries.all(add, kit_id);
    });
    await expect(done).rejects.toBeInstanceOf(StorageUnavailable);
    expect(attempts).toBe(1);
  });

  it('is rejected when its work went on after a statement that failed: the server has rolled it back', async () => {
    await open();
    const done = database.transaction(async (queries) => {
      await queries.all(add, kit_id);
      await queries.all('SELECT 1 / 0').catch(() => undefined);
      return 'stored';
    });
    await expect(done).rejects.toBeInstanceOf(InvariantBroken);
    expect(await database.all('SELECT kit_id FROM kits')).toEqual([]);
  });

  it('is done again when it and another one waited for each other', async () => {
    await open();
    await Promise.all([database.all(add, kit_id), database.all(add, task_id)]);
    const touch = 'UPDATE kits SET received = received + 1 WHERE kit_id = ?';
    let attempts = 0;
    const touched = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const both = async (first: string, second: string): Promise<void> =>
      database.transaction(async (queries) => {
        attempts += 1;
        await queries.all(touch, first);
        touched[first === kit_id ? 0 : 1]?.resolve();
        await Promise.all(touched.map(async ({ promise }) => promise));
        await queries.all(touch, second);
      });
    await Promise.all([both(kit_id, task_id), both(task_id, kit_id)]);
    expect(attempts).toBe(3);
    const rows = await database.all('SELECT received FROM kits');
    expect(rows.map((row) => Number(row['received']))).toEqual([2, 2]);
  });

  it('gives up soon when another one holds its row, and names that as the reason', async () => {
    await open();
    const other = await hold(kit_id);
    const store = sqlStore(database);
    await expect(store.commit([received(gps(1, 47))], start_ms)).rejects.toBeInstanceOf(StorageBusy);
    await other.query('ROLLBACK');
    await store.commit([received(gps(1, 47))], start_ms);
  });

  it('opens a database that another client is writing to, and delays no client', async () => {
    await open();
    const other = await hold(kit_id);
    await other.query(`INSERT INTO received (kit_id, epoch, ranges) VALUES ('', 1, '')`);
    await other.query(`UPDATE tasks SET due_ms = 1 WHERE kit_id = ''`);
    const again = await openPostgres({ url, password: server.password });
    expect(await again.all('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await again.close();
    await other.query('ROLLBACK');
  });

  it('stores what kits sent while other work has taken all other connections and more waits for one', async () => {
    await open();
    const store = sqlStore(database);
    const other = new Client(clientOf(url));
    others.push(other);
    await other.connect();
    await other.query('SELECT pg_advisory_lock(1)');
    const works = Array.from({ length: 40 }, async () =>
      database.transaction(async (queries) => queries.all('SELECT pg_advisory_xact_lock(1)')),
    );
    await eventually('the others wait', async () => (await waitersIn(other)) >= 2);
    await store.commit([received(gps(1, 47))], start_ms);
    expect(await waitersIn(other)).toBeGreaterThanOrEqual(2);
    await other.query('SELECT pg_advisory_unlock(1)');
    await Promise.all(works);
  });

  it('names the remedy of what keeps a user from its database, and loses no message for rights that are taken away', async () => {
    await open();
    const admin = new Client(clientOf(url));
    others.push(admin);
    await admin.connect();
    await admin.query(`CREATE ROLE plain LOGIN PASSWORD 'plain'`);
    await admin.query(`CREATE DATABASE western ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const at = (change: (address: URL) => void): string => {
      const address = new URL(url);
      change(address);
      return address.href;
    };
    const own = at((address) => (address.username = 'plain'));
    const refusal = async (address: string, password: string): Promise<string> => {
      const opened = openPostgres({ url: address, password });
      await expect(opened).rejects.toBeInstanceOf(StorageUnavailable);
      return messageOf(await opened.catch((error: unknown) => error));
    };
    expect(await refusal(url, 'wrong')).toContain(texts.postgres_login);
    expect(await refusal(own, 'plain')).toContain(texts.postgres_rights);
    const { password } = server;
    const missing = at((address) => (address.pathname = '/missing'));
    expect(await refusal(missing, password)).toContain(texts.postgres_no_database);
    const western = at((address) => (address.pathname = '/western'));
    expect(await refusal(western, password)).toBe(texts.postgres_encoding('LATIN1'));
    await admin.query('ALTER ROLE plain CONNECTION LIMIT 0');
    expect(await refusal(own, 'plain')).toContain(texts.postgres_connections);

    // Rights that are taken away later: messages wait, and none counts as refused by the database.
    await admin.query('ALTER ROLE plain CONNECTION LIMIT -1');
    await admin.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO plain');
    const later = await openPostgres({ url: own, password: 'plain' });
    try {
      const store = sqlStore(later);
      await admin.query('REVOKE INSERT ON kits FROM plain');
      const commit = store.commit([received(gps(1, 47))], start_ms);
      await expect(commit).rejects.toBeInstanceOf(StorageUnavailable);
      await admin.query('GRANT INSERT ON kits TO plain');
      await store.commit([received(gps(1, 47))], start_ms);
    } finally {
      await later.close();
    }
  });

  it('does not stall the messages of other kits when it holds the row of one', { tags: 'long' }, async () => {
    await open();
    const store = sqlStore(database);
    const { ingest, log, ends } = startIngest({ store });
    const other = await hold(kit_id);
    let isHeldStored = false;
    const held = [1, 2, 3].map(async (seq) => ingest.take(received(gps(seq, seq))));
    const all = Promise.all(held).finally(() => {
      isHeldStored = true;
    });
    for (let seq = 1; seq <= 5; seq += 1) await ingest.take({ ...received(gps(seq, seq)), kit_id: task_id });
    expect((await store.kit(task_id))?.counts.received).toBe(5);
    expect(isHeldStored).toBe(false);
    expect(ingest.unready).toBeUndefined();
    await other.query('ROLLBACK');
    await all;
    await eventually(
      'the kit has its messages',
      async () => (await store.kit(kit_id))?.counts.received === 3,
    );
    expect(log.at('error')).toEqual([]);
    ends.abort();
    await ingest.settled();
  });
});
