/**
 * Processes of several versions on one database. A version that another one has excluded stores nothing any more, in whatever order their
 * transactions come: what it acknowledged would be in tables that nobody reads.
 */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { SchemaRefused, StorageUnavailable } from '../../../../src/platform/errors.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../../src/cloud/sql/postgres.ts';
import { type Schema, schema, schemaOf, type Upgrade } from '../../../../src/cloud/sql/schema.ts';
import { marksOf, openSqlite } from '../../../../src/cloud/sql/sqlite.ts';

import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { asset_id, kit_id, task_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { startServiceLab } from '../../../support/service/service-lab.ts';
import { peerMissing } from '../../../support/peers.ts';
import { clientOf, type Postgres, startPostgres } from '../../../support/database/postgres.ts';
import { registeredWebhook } from '../../../support/service/registered-webhook.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { rm } from 'node:fs/promises';
import { addHook, gps, received, start_ms, story, truck } from '../story.ts';

const version = schema.version + 1;
const adds = ['kits', 'tasks'].map(
  (table) => ({ kind: 'column', table, name: 'later', type: 'TEXT', fill: undefined }) as const,
);
/** The next version, which only adds: this one may write beside it. */
const expanding = schemaOf([...schema.steps, { version, writers_from: schema.writers_from, adds }]);
/** The one that takes away what only this one needs. */
const contracting = schemaOf([...schema.steps, { version, writers_from: version, adds }]);
const excluded = texts.schema_later(version, schema.version);

const { key } = makeKey({ label: 'test', scopes: [], kits: '*', expires_ms: null }, start_ms);
const webhook_id = '00000000-0000-4000-8000-000000000001';
const repeatable = { key_id: key.key_id, idempotency_key: 'one', request: 'hash' };
const days = { event: 1, position: 1, feed: 1, kit: 1 };

/** Whatever a service and its tools store. */
const writers: readonly (readonly [what: string, write: (store: Store) => Promise<unknown>])[] = [
  ['messages', async (store) => store.commit([received(gps(50, 1))], start_ms)],
  ['messages of an import', async (store) => store.importMessages(kit_id, [], start_ms)],
  ['a partner asset', async (store) => store.addPartner(truck(asset_id))],
  ['its change', async (store) => store.changePartner(kit_id, asset_id, { name: 'Van' })],
  ['its removal', async (store) => store.removePartner(kit_id, asset_id)],
  [
    'its position',
    async (store) =>
      store.pushFixes(
        kit_id,
        [{ asset_id, fix: { lat: 1, lon: 2, alt_m: null, bearing: null, speed_mps: null } }],
        start_ms,
      ),
  ],
  ['that its position was sent', async (store) => store.partnerFixSent(kit_id, asset_id, start_ms)],
  [
    'a task',
    async (store) =>
      store.addTask({
        kit_id,
        task_id,
        asset_id,
        command_name: 'arm',
        payload: {},
        requested_by: 'test',
        requested_by_name: 'test',
        created_ms: start_ms,
        due_ms: start_ms,
      }),
  ],
  ['that a task failed', async (store) => store.failTask(kit_id, task_id, 'gone', start_ms)],
  ['an erasure', async (store) => store.eraseHistory({ kit_id, before_ms: start_ms }, start_ms)],
  ['how long the history is kept', async (store) => store.setHistoryRetention({ days, figures_days: 1 })],
  ['what is older than that', async (store) => store.trimHistory({ days, figures_days: 1 }, start_ms)],
  ['the divided history', async (store) => store.compactHistory(start_ms, true)],
  ['a key', async (store) => store.addKey(key)],
  ['the use of a key', async (store) => store.noteUses([[key.key_id, start_ms]])],
  ['that a key is revoked', async (store) => store.revokeKey(key.key_id)],
  ['a session', async (store) => store.addSession('hash', key.key_id, start_ms)],
  ['the end of a session', async (store) => store.endSession('hash')],
  ['a request that may be repeated', async (store) => store.claim(repeatable, start_ms)],
  ['its answer', async (store) => store.answer(repeatable, {})],
  [
    'a webhook',
    async (store) =>
      store.addWebhook(
        registeredWebhook({
          webhook_id,
          url: 'https://example.com',
          types: ['alarm'],
          kits: '*',
          key_id: key.key_id,
          created_ms: start_ms,
        }),
      ),
  ],
  ['what a webhook delivered', async (store) => store.settleMessages([])],
  ['the replay of a webhook', async (store) => store.replayDead(webhook_id, '*', start_ms)],
];

/** A store on a database whose tables a later version changes after `open`. */
async function expectNoWriter(store: Store, exclude: () => Promise<void>): Promise<void> {
  await store.commit(story.map(received), start_ms);
  expect(await store.schemaFault()).toBeUndefined();
  await exclude();
  for (const [what, write] of writers) {
    const refused: unknown = await write(store).catch((error: unknown) => error);
    expect({ what, refused }).toEqual({ what, refused: new StorageUnavailable(excluded) });
  }
  expect(await store.schemaFault()).toBe(excluded);
  expect((await store.kit(kit_id))?.counts.received).toBe(story.length);
}

describe('on SQLite, of two processes with one file', () => {
  let dir: string;
  const opened: Database[] = [];
  const open = (its: Schema = schema, upgrade: Upgrade = 'alone'): Database => {
    const database = openSqlite(join(dir, 'service.db'), { schema: its, upgrade });
    opened.push(database);
    return database;
  };
  beforeAll(async () => {
    dir = await makeDirectory();
  });
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close();
    await rm(join(dir, 'service.db'), { force: true });
  });
  afterAll(async () => rm(dir, { recursive: true, force: true }));

  it('the one that another version has excluded stores nothing any more', async () => {
    await expectNoWriter(sqlStore(open()), async () => void open(contracting));
    expect(() => open()).toThrow(SchemaRefused);
  });

  it('both store while the later one only adds', async () => {
    const [before, after] = [sqlStore(open()), sqlStore(open(expanding))];
    await before.commit([received(gps(1, 1))], start_ms);
    await after.commit([received(gps(2, 2))], start_ms);
    await sqlStore(open()).commit([received(gps(3, 3))], start_ms);
    expect((await after.kit(kit_id))?.counts.received).toBe(3);
  });

  it('an event of a webhook is queued by the version that does not know all its types', async () => {
    const store = sqlStore(open());
    const later = open(expanding);
    const types = ['alarm'] as const;
    await addHook(store, { types });
    await later.all(`UPDATE webhooks SET types = '["alarm","of.the.next.version"]'`);
    const channel = channels.event(asset_id, 'motion');
    await store.commit([received({ channel, seq: 1, data: { detected: true } })], start_ms);
    expect(await store.webhooks()).toMatchObject([{ types, counts: { accepted: 1 } }]);
  });

  it('a service that is excluded acknowledges nothing, says so on /ready, and lets its process end it', async () => {
    const lab = await startServiceLab(kit_id, { store: sqlStore(open()) });
    open(contracting);
    const published = lab.publish(channels.telemetry, {});
    published.catch(() => undefined);
    let reason = '';
    await eventually('it says so', async () => {
      const response = await fetch(`${lab.url}/ready`);
      reason = await response.text();
      return response.status === 503 && reason.includes(excluded);
    });
    expect(await lab.excluded).toBe(excluded);
    await lab.stop();
    await expect(published).rejects.toThrow(StorageUnavailable);
    expect(lab.log.at('error')).toContain(texts.log_schema_other);
    opened.shift();
  });

  it('a tool makes tables, and never changes those of an earlier version', () => {
    open(schema, 'never');
    expect(() => open(expanding, 'never')).toThrow(texts.tables_not_upgraded);
    const file = new Sqlite(join(dir, 'service.db'));
    const { version: made, writers_from } = schema;
    expect(marksOf(file, 'main')).toEqual({ version: made, writers_from });
    file.close();
  });
});

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))('on PostgreSQL, of several processes', () => {
  let server: Postgres;
  let url: string;
  let databases = 0;
  let asker: Client;
  const opened: Database[] = [];
  const open = async (its: Schema = schema, upgrade: Upgrade = 'alone'): Promise<Database> => {
    const database = await openPostgres({ url, password: server.password }, { schema: its, upgrade });
    opened.push(database);
    return database;
  };
  const storeOn = (database: Database): Store => sqlStore(database, { replica_id: 'this' });
  const waits = async (): Promise<boolean> => {
    const { rowCount } = await asker.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND mode = 'ExclusiveLock'`,
    );
    return rowCount === 1;
  };
  beforeAll(async () => {
    server = await startPostgres();
    asker = new Client(clientOf(server.url));
    await asker.connect();
  });
  beforeEach(async () => {
    databases += 1;
    url = await server.newDatabase(`kits_${databases}`);
  });
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close();
  });
  afterAll(async () => {
    await asker?.end();
    await server?.stop();
  });

  it('the one that another version has excluded stores nothing any more', async () => {
    const store = storeOn(await open());
    await expectNoWriter(store, async () => void (await open(contracting, 'now')));
    await expect(store.leadHistory(1)).rejects.toThrow(excluded);
    await expect(open()).rejects.toThrow(SchemaRefused);
  });

  it('an upgrade waits for a transaction that writes, and none of the earlier version commits after it', async () => {
    const database = await open();
    const insert = async (name: string): Promise<void> =>
      database.transaction(async (queries) => {
        await queries.all('INSERT INTO kits (kit_id) VALUES (?)', name);
      });
    const may_end = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const first = database.transaction(async (queries) => {
      await queries.all(`INSERT INTO kits (kit_id) VALUES ('before')`);
      begun.resolve();
      await may_end.promise;
    });
    await begun.promise;
    const upgrade = open(contracting, 'now');
    await eventually('the upgrade waits', waits);
    // It comes after the upgrade, whether it waits for it or gives up.
    const second = insert('behind');
    second.catch(() => undefined);
    may_end.resolve();
    await first;
    const later = await upgrade;
    await expect(second).rejects.toBeInstanceOf(StorageUnavailable);
    await expect(insert('after')).rejects.toThrow(excluded);
    expect(await later.all('SELECT kit_id FROM kits')).toEqual([{ kit_id: 'before' }]);
  });

  it('a start that has nothing to change waits for no transaction', async () => {
    const database = await open();
    await database.transaction(async (queries) => {
      await queries.all(`INSERT INTO kits (kit_id) VALUES ('under way')`);
      await expect(open()).resolves.toBeDefined();
    });
  });

  it('both store while the later one only adds, and prepared statements take its columns', async () => {
    const before = storeOn(await open());
    await before.commit(story.map(received), start_ms);
    // Each connection has prepared it.
    await Promise.all(Array.from({ length: 6 }, async () => before.task(kit_id, task_id)));
    const after = storeOn(await open(expanding));
    expect(await before.task(kit_id, task_id)).toMatchObject({ status: 'completed' });
    await before.commit([received(gps(21, 1))], start_ms);
    await after.commit([received(gps(22, 2))], start_ms);
    await storeOn(await open()).commit([received(gps(23, 3))], start_ms);
    expect((await before.kit(kit_id))?.counts.received).toBe(story.length + 3);
  });

  it('a version excludes earlier ones once none of them is connected', async () => {
    const before = await open();
    await expect(open(contracting)).rejects.toThrow(/stop them, or run "kit-connector service upgrade"/u);
    await before.close();
    opened.splice(0);
    // The server notices the end of a connection a moment later.
    const isOpened = async (): Promise<boolean> =>
      open(contracting).then(
        () => true,
        () => false,
      );
    await eventually('the earlier version is excluded', isOpened);
  });

  it('a version excludes none that would not notice it while one is connected', async () => {
    await (await open({ ...schema, version: 1, writers_from: 1 })).close();
    opened.splice(0);
    const unfenced = new Client({ ...clientOf(url), application_name: 'kit-connector' });
    await unfenced.connect();
    try {
      await expect(open(schema, 'now')).rejects.toThrow(texts.unfenced_writers(1));
    } finally {
      await unfenced.end();
    }
  });

  it('a restored database of an earlier version is written only after the next start', async () => {
    const database = await open(expanding);
    await database.all(`UPDATE service SET value = '1' WHERE name IN ('schema_version', 'writers_from')`);
    const reason = texts.schema_earlier(1, version);
    await expect(database.all(`DELETE FROM kits`)).rejects.toThrow(reason);
    expect(await database.schemaFault()).toBe(reason);
    await database.close();
    opened.splice(0);
    await (await open(expanding)).all(`DELETE FROM kits`);
  });

  it('a tool makes tables, and never changes those of an earlier version', async () => {
    await open(schema, 'never');
    await expect(open(expanding, 'never')).rejects.toThrow(texts.tables_not_upgraded);
  });
});
