/** The store on a real PostgreSQL: the same as on SQLite, shared by replicas, and through outages. */
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { InvariantBroken, StorageBusy, StorageUnavailable } from '../../../../src/platform/errors.ts';
import { Changes } from '../../../../src/cloud/changes.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { openPostgres } from '../../../../src/cloud/sql/postgres.ts';
import { openStore, type OpenedStore } from '../../../../src/cloud/open-store.ts';
import { content_columns, updated_tables } from '../../../../src/cloud/sql/tables.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import type { Change } from '../../../../src/cloud/stored/stored.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing } from '../../../support/peers.ts';
import { type Postgres, startPostgres } from '../../../support/database/postgres.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { everything, gps, received, start_ms, startIngest, story, truck } from '../story.ts';
import { texts } from '../../../../src/cloud/texts.ts';

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))('the store on PostgreSQL', () => {
  let server: Postgres;
  let databases = 0;
  const open: Store[] = [];
  const ends: AbortController[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) end.abort();
    for (const store of open.splice(0)) await store.close().catch(() => undefined);
  });
  afterAll(async () => server?.stop());

  async function newUrl(): Promise<string> {
    databases += 1;
    return server.newDatabase(`kits_${databases}`);
  }

  async function openAt(url: string): Promise<OpenedStore> {
    const opened = await openStore({ kind: 'postgres', url, password: server.password });
    open.push(opened.store);
    return opened;
  }

  /** Follows the other replicas; returns their changes and the log. */
  function follow({ followReplicas }: OpenedStore) {
    const end = new AbortController();
    ends.push(end);
    const changes = new Changes();
    const heard: Change[] = [];
    changes.subscribe(kit_id, (news) => heard.push(...news), end.signal);
    const log = recordingLog();
    const done = followReplicas?.(changes, log, end.signal) ?? Promise.resolve();
    return { heard, log, done };
  }

  it('lets one replica keep the history in order, and another one when its lease has run out', async () => {
    const url = await newUrl();
    const [{ store: one }, { store: other }] = [await openAt(url), await openAt(url)];
    const database = await openPostgres({ url, password: server.password }, { prepares: false });
    const leads = async () => [await one.leadHistory(60_000), await other.leadHistory(60_000)];
    const setUntil = async (until: string) =>
      database.all(
        `UPDATE service SET value = split_part(value, ' ', 1) || ' ' || ${until} WHERE name = 'history_leader'`,
      );
    try {
      expect(await leads()).toEqual([true, false]);
      expect(await leads()).toEqual([true, false]);
      await setUntil('0');
      expect(await other.leadHistory(60_000)).toBe(true);
      expect(await leads()).toEqual([false, true]);
      // The clock of the server was set back: no lease lasts for so long.
      await setUntil('CAST(EXTRACT(EPOCH FROM now()) * 1000 + 3600000 AS BIGINT)');
      expect(await leads()).toEqual([true, false]);
    } finally {
      await database.close();
    }
  });

  it('tunes its tables once: room in the pages that commits update, and no statistics of contents', async () => {
    const url = await newUrl();
    await openAt(url);
    const database = await openPostgres({ url, password: server.password }, { prepares: false });
    // `xmin`: the transaction that wrote the row.
    const tuned = async () => ({
      tables: await database.all(
        `SELECT relname, CAST(xmin AS TEXT) FROM pg_class WHERE reloptions = '{fillfactor=45}' ORDER BY relname`,
      ),
      columns: await database.all(
        `SELECT relname, attname, CAST(pg_attribute.xmin AS TEXT) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE attstattarget = 0 AND attnum > 0 AND relkind = 'r' AND relnamespace = 'public'::regnamespace
         ORDER BY relname, attname`,
      ),
    });
    try {
      const before = await tuned();
      expect(before.tables.map((row) => row['relname'])).toEqual([...updated_tables].sort());
      const columns = before.columns.map((row) => `${String(row['relname'])} ${String(row['attname'])}`);
      expect(columns).toEqual(content_columns.map((names) => names.join(' ')).sort());
      await openAt(url);
      expect(await tuned()).toEqual(before);
    } finally {
      await database.close();
    }
  });

  it(
    'comes to the same end as SQLite, in any order, in pieces and with repetitions',
    { tags: 'long' },
    async () => {
      const sqlite = sqlStore(openSqlite(':memory:'));
      open.push(sqlite);
      await sqlite.commit(story.map(received), start_ms);
      const { kit, ...wanted } = await everything(sqlite);
      const anyOrder = fc.shuffledSubarray([...story, ...story], { minLength: story.length * 2 });
      await fc.assert(
        fc.asyncProperty(anyOrder, fc.integer({ min: 1, max: 20 }), async (order, piece) => {
          const { store } = await openAt(await newUrl());
          for (let at = 0; at < order.length; at += piece) {
            await store.commit(order.slice(at, at + piece).map(received), start_ms);
          }
          const now = await everything(store);
          expect({ ...now.kit, counts: undefined }).toEqual({ ...kit, counts: undefined });
          expect({ ...now, kit: undefined }).toEqual({ ...wanted, kit: undefined });
          expect(now.kit?.counts).toMatchObject({ received: story.length, duplicates: story.length });
          await store.close();
          open.pop();
        }),
        { numRuns: 4 },
      );
    },
  );

  it('counts each message once when two replicas get the same messages of the same kit at the same time', async () => {
    const url = await newUrl();
    const [{ store: one }, { store: two }] = await Promise.all([openAt(url), openAt(url)]);
    const messages = Array.from({ length: 60 }, (_, n) => gps(n + 1, n));
    const pairs = messages.map((each, n) => [each, messages[(n + 1) % 60] ?? each].map(received));
    // Each replica commits as `Ingest` does: two at once, and again what has waited too long for the row of the kit.
    const commits = [one, two, one, two].map(async (store) => {
      for (let pair = pairs.shift(); pair; pair = pairs.shift())
        await store.commit(pair, start_ms).catch((error: unknown) => {
          if (!(error instanceof StorageBusy)) throw error;
          pairs.push(pair);
        });
    });
    await Promise.all(commits);
    expect((await two.kit(kit_id))?.counts).toEqual({
      received: 60,
      duplicates: 60,
      missing: 0,
      dropped: 0,
      refused: 0,
    });
    expect(await one.acks(kit_id)).toEqual([{ epoch: 17, ranges: [[1, 60]] }]);
    expect(await one.feeds(kit_id, asset_id)).toMatchObject([{ data: { lat: 59 } }]);
  });

  it('notifies the other replicas, and not itself, of what it stores for kits and for clients', async () => {
    const url = await newUrl();
    const [one, two] = [await openAt(url), await openAt(url)];
    const mine = follow(one);
    const theirs = follow(two);
    await eventually('the other one listens', async () => {
      await one.store.commit([received({ ...gps(Date.now() % 1e9, 1), epoch: 16 })], Date.now());
      return theirs.heard.length > 0;
    });
    theirs.heard.length = 0;
    await one.store.commit(story.map(received), start_ms);
    const large = 'x'.repeat(9_000);
    const data = { ...gps(100, 48).data, large };
    await one.store.commit([received({ ...gps(100, 48), epoch: 18, data })], start_ms);
    const order = { kit_id, task_id: kit_id, asset_id, command_name: 'arm', payload: {} };
    const requester = { requested_by: kit_id, requested_by_name: 'test' };
    await one.store.addTask({ ...order, ...requester, created_ms: start_ms, due_ms: start_ms });
    await one.store.failTask(kit_id, kit_id, 'nobody there', start_ms);
    await eventually('all news', () =>
      theirs.heard.some((change) => change.kind === 'task' && change.task.result['error'] === 'nobody there'),
    );
    const kinds = new Set(theirs.heard.map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['asset', 'commands', 'feed', 'kit', 'task']);
    const [feed] = theirs.heard.filter((each) => each.kind === 'feed').slice(-1);
    expect(feed?.message.data['large'] === large).toBe(true);
    expect(mine.heard).toEqual([]);
  });

  it('takes what it knows of a notice of a later version', async () => {
    const url = await newUrl();
    const opened = await openAt(url);
    const { heard } = follow(opened);
    const later = await openPostgres({ url, password: server.password }, { prepares: false });
    const news = [{ kind: 'of the next version' }, { kind: 'kit', kit_id }];
    const notice = JSON.stringify({ from: 'another', news, more: true });
    await eventually('the change is heard', async () => {
      await later.all('SELECT pg_notify(?, ?)', 'kit_changes', notice);
      return heard.length > 0;
    });
    expect(heard[0]).toEqual({ kind: 'kit', kit_id });
    await later.close();
  });

  it('sends all changes that a subscriber may have missed after a reconnect', async () => {
    const url = await newUrl();
    const [one, two] = [await openAt(url), await openAt(url)];
    await one.store.commit(story.map(received), start_ms);
    const { heard, log } = follow(two);
    await eventually('the link is up', async () => {
      await one.store.commit([received(gps(Date.now() % 1e9, 1))], Date.now());
      return heard.length > 0;
    });
    heard.length = 0;
    await server.cutConnections();
    await eventually('it is back', () =>
      log.at('info').some((each) => each.includes(texts.log_replicas_restored)),
    );
    await eventually('everything is sent', () => heard.some(({ kind }) => kind === 'task'));
    expect(new Set(heard.map(({ kind }) => kind))).toEqual(
      new Set(['kit', 'asset', 'commands', 'feed', 'task']),
    );
  });

  it('says StorageUnavailable while the server is away, and continues with the next question when it is back', async () => {
    const { store } = await openAt(await newUrl());
    await store.commit(story.map(received), start_ms);
    await server.kill();
    await expect(store.commit([received(gps(50, 50))], start_ms)).rejects.toBeInstanceOf(StorageUnavailable);
    await expect(store.kits('*')).rejects.toBeInstanceOf(StorageUnavailable);
    await server.start();
    await store.commit([received(gps(50, 50))], start_ms);
    expect((await store.kit(kit_id))?.counts.received).toBe(story.length + 1);
  });

  it('keeps nothing of a transaction that fails, and notifies no one', async () => {
    const database = await openPostgres({ url: await newUrl(), password: server.password });
    const doomed = database.transaction(async (queries) => {
      await queries.all(`INSERT INTO kits (kit_id) VALUES (?)`, kit_id);
      await queries.all('INSERT INTO kits (kit_id, heard_ms) VALUES (?, ?)', task_id, '1e400');
    });
    await expect(doomed).rejects.toBeInstanceOf(InvariantBroken);
    expect(await database.all('SELECT * FROM kits')).toEqual([]);
    await database.close();
  });

  it('takes a text with a NUL, and gives up a message that no database takes without harm to other kits', async () => {
    const { store } = await openAt(await newUrl());
    const { ingest, log, ends: end } = startIngest({ store });
    ends.push(end);
    const odd = received({
      channel: channels.event(asset_id, 'asset_status'),
      seq: 1,
      data: { status: 'offline', reason: 'a\0b' },
    });
    const row = { epoch: 17, lane: 'feed', reason: 'evicted', lo: 1, hi: 2, rows: Number.MAX_SAFE_INTEGER };
    // Each fits into 64 bits, and both together do not.
    const drops = Array.from({ length: 1_000 }, () => row);
    const large = received({ channel: channels.drops, seq: 2, data: { drops } });
    const poison = received({ channel: channels.drops, seq: 3, data: { drops } });
    const other = { ...received(gps(1, 1)), kit_id: task_id };
    await Promise.all([odd, large, poison, other].map(async (each) => ingest.take(each)));
    expect((await store.kit(task_id))?.counts.received).toBe(1);
    expect(log.at('error')).toEqual([texts.log_message_rejected]);
    expect(ingest.unready).toBeUndefined();
    // Its number counts, or the kit would send it again for ever.
    expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 3, refused: 1 });
  });

  it('keeps keys, names, partners and sessions as SQLite does', async () => {
    const { store } = await openAt(await newUrl());
    const { key } = makeKey({ label: 'a', scopes: ['read'], kits: '*', expires_ms: null }, start_ms);
    await store.addKey(key);
    await store.addSession('hash', key.key_id, start_ms + 1_000);
    expect(await store.session('hash', start_ms)).toBe(key.key_id);
    expect(await store.keys()).toEqual([key]);
    expect(await store.revokeKey(key.key_id)).toBe(true);
    expect(await store.session('hash', start_ms)).toBeUndefined();
    await store.commit(
      [received({ channel: channels.asset(asset_id), seq: 1, data: samples['announcement'] ?? {} })],
      start_ms,
    );
    await store.addPartner({ ...truck(task_id), metadata: { a: 1 } });
    const fix = { lat: 1, lon: 2, alt_m: null, bearing: null, speed_mps: null };
    await store.pushFixes(kit_id, [{ asset_id: task_id, fix }], start_ms);
    expect(await store.asset(kit_id, task_id)).toMatchObject({ lat: 1, lon: 2, metadata: { a: 1 } });
    expect(await store.removePartner(kit_id, task_id)).toBe(true);
    expect(await store.removePartner(kit_id, asset_id)).toBe(false);
    const request = { key_id: 'k', idempotency_key: 'i', request: 'r' };
    expect(await store.claim(request, start_ms)).toEqual({ kind: 'mine' });
    await store.answer(request, { id: 1 });
    expect(await store.claim(request, start_ms)).toEqual({ kind: 'known', request: 'r', answer: { id: 1 } });
  });
});
