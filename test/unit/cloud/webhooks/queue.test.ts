/** The queue of webhooks in the database: what is queued with a commit, and who may deliver it. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { channels } from '../../../../src/contract/topics.ts';
import {
  webhookBodies,
  webhookTypes,
  type WebhookType,
} from '../../../../src/cloud/api/webhook-resources.ts';
import { silent_after_ms } from '../../../../src/cloud/api/views.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { turn } from '../../../../src/platform/time.ts';
import { commitReceptions } from '../../../../src/cloud/store/commit.ts';
import type { Database, Queries, SqlValue } from '../../../../src/cloud/sql/database.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { AddressPolicy } from '../../../../src/cloud/webhooks/address-policy.ts';
import { waiting_max } from '../../../../src/cloud/webhooks/enqueue.ts';
import { WebhookOperations } from '../../../../src/cloud/webhooks/operations.ts';
import type { Settlement } from '../../../../src/cloud/webhooks/webhook-store.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { addHook, idOf, received, report, start_ms } from '../story.ts';
import { texts } from '../../../../src/cloud/webhooks/texts.ts';

const webhook_id = '00000000-0000-4000-8000-000000000001';
const now_ms = start_ms + 10_000;
/** Begins and ends in turn: a state that is repeated is no event. */
const motion = (seq: number, asset: string = asset_id, detected = seq % 2 === 1) =>
  received({ channel: channels.event(asset, 'motion'), seq, data: { detected } });
/** Motions of as many assets. */
const motions = (count: number) => Array.from({ length: count }, (_, n) => motion(n + 1, idOf(n), true));

const register = async (
  store: Store,
  types: readonly WebhookType[] = ['task.ended', 'alarm', 'kit.online', 'kit.offline'],
) => addHook(store, { webhook_id, types });

/** The counts, after a comparison with the rows. */
async function counts(database: Database, store: Store) {
  const found = (await store.webhook(webhook_id))?.counts;
  const rows = await database.all('SELECT state FROM webhook_messages WHERE webhook_id = ?', webhook_id);
  const waiting = rows.filter(({ state }) => state === 'waiting').length;
  expect(found).toMatchObject({ waiting, dead: rows.length - waiting });
  expect(found?.accepted).toBe((found?.delivered ?? 0) + waiting + (found?.dead ?? 0) + (found?.purged ?? 0));
  return found;
}

const claim = async (store: Store, lease: string, at_ms = now_ms, limit = 10) =>
  store.claimMessages({ webhook_id, limit, now_ms: at_ms, lease_ms: at_ms + 30_000, lease });
const settle = async (store: Store, settlement: Settlement) => (await store.settleMessages([settlement]))[0];
/** Claims, with a lease for each, until nothing is left that another one does not block. */
const claimAll = async (store: Store, at_ms: number) => {
  const all = [];
  for (let n = 0; n < 10; n += 1) {
    const some = await claim(store, `all ${n}`, at_ms);
    for (const { id } of some) {
      await settle(store, failed(id, `all ${n}`, { retry_ms: at_ms + 60_000 }));
    }
    all.push(...some);
  }
  return all;
};
const failed = (id: string, lease: string, more: object = {}): Settlement => ({
  webhook_id,
  id,
  lease,
  kind: 'failed',
  now_ms,
  reason: 'answered with status 500',
  retry_ms: now_ms + 5_000,
  pause_until_ms: now_ms + 5_000,
  ...more,
});

/** Queries of which all that were asked in one turn are answered in the next: over a network each turn is a round trip. */
function countedRounds(queries: Queries) {
  let rounds = 0;
  let next: Promise<void> | undefined;
  const round = async (): Promise<void> => {
    next ??= (async () => {
      await turn();
      rounds += 1;
      next = undefined;
    })();
    return next;
  };
  return {
    queries: {
      all: async (sql: string, ...values: readonly SqlValue[]) => {
        await round();
        return queries.all(sql, ...values);
      },
    },
    count: () => rounds,
  };
}

onEachDatabase('The queue of webhooks', (open) => {
  it('keeps a commit waiting for 64 receivers hardly longer than for two', { tags: 'long' }, async () => {
    const roundsOf = async (receivers: number): Promise<number> => {
      const database = await open();
      const store = sqlStore(database);
      await register(store);
      for (let n = 2; n <= receivers; n += 1)
        await addHook(store, { webhook_id: `hook ${n}`, types: ['alarm'] });
      return database.transaction(async (queries) => {
        const counted = countedRounds(queries);
        await commitReceptions(counted.queries, [motion(1)], { now_ms, keepsHistory: false });
        const queued = await queries.all('SELECT DISTINCT webhook_id FROM webhook_messages');
        expect(queued).toHaveLength(receivers);
        return counted.count();
      });
    };
    // One after the other, 62 receivers would add 124.
    expect(await roundsOf(64)).toBeLessThan((await roundsOf(2)) + 16);
  });

  it('gets task ends, alarms and changes of presence, each once, and nothing else', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    const born = received({ channel: channels.state, seq: 1, data: samples['kitState'] ?? {} });
    const will = received({
      channel: channels.state,
      seq: 2,
      data: { ...samples['kitState'], online: false, reason: 'connection_lost' },
    });
    const receptions = [
      received({
        channel: channels.event(asset_id, 'asset_status'),
        seq: 1,
        data: { status: 'offline', reason: null },
      }),
      motion(2, asset_id, true),
      received({ channel: channels.feed(asset_id, 'gps'), seq: 3, data: { lat: 1, lon: 1 } }),
      received({ channel: channels.task(task_id), seq: 4, data: report('running', 1) }),
      received({ channel: channels.task(task_id), seq: 5, data: report('completed', 2) }),
    ];
    await store.commit([born, ...receptions], now_ms);
    await store.commit([born, ...receptions, will], now_ms);
    await store.commit([will, motion(2, asset_id, true)], now_ms);
    const messages = await database.all('SELECT type, body FROM webhook_messages ORDER BY type');
    expect(messages.map(({ type }) => type)).toEqual(['alarm', 'kit.offline', 'kit.online', 'task.ended']);
    for (const { type, body } of messages) {
      const { data: known } = z.enum(webhookTypes).safeParse(type);
      const read = known && webhookBodies[known].safeParse(JSON.parse(String(body)));
      expect(read?.error).toBeUndefined();
      expect(read?.success).toBe(true);
    }
    const alarm = JSON.parse(String(messages[0]?.['body'])) as object;
    expect(alarm).toEqual({
      type: 'alarm',
      timestamp: new Date(start_ms + 2).toISOString(),
      data: { kit_id, asset_id, feed: 'motion', severity: 'info', message: { detected: true } },
    });
    expect(await counts(database, store)).toMatchObject({ accepted: 4, waiting: 4 });
  });

  it('gets the end of a task that no kit answered', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    const order = { kit_id, task_id, asset_id, command_name: 'arm', payload: {}, requested_by: kit_id };
    await store.addTask({ ...order, requested_by_name: 'test', created_ms: now_ms, due_ms: now_ms + 1 });
    await store.failSilent(now_ms + 2);
    await store.failTask(kit_id, task_id, 'again', now_ms + 3);
    const [message, ...others] = await claim(store, 'a', now_ms + 5);
    expect(others).toEqual([]);
    expect(JSON.parse(message?.body ?? '{}')).toMatchObject({
      data: { kit_id, task: { id: task_id, status: 'failed' } },
    });
  });

  it('gives each message to one claim, and to another one when the lease is over', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    await store.commit(motions(20), now_ms);
    const claims = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (lease) => claim(store, lease, now_ms, 5)),
    );
    const ids = claims.flat().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const lease = claims.findIndex((some) => some.length > 0);
    const [first] = claims[lease] ?? [];
    await claim(store, 'late', now_ms + 30_001, 100);
    // The first one was too slow: its outcome does not count any more.
    const mine = { webhook_id, id: first?.id ?? '', lease: 'abcd'[lease] ?? '' };
    await settle(store, { ...mine, kind: 'delivered', now_ms });
    expect(await counts(database, store)).toMatchObject({ delivered: 0, waiting: 20 });
    await settle(store, { ...mine, lease: 'late', kind: 'delivered', now_ms });
    await settle(store, { ...mine, lease: 'late', kind: 'delivered', now_ms });
    expect(await counts(database, store)).toMatchObject({ delivered: 1, waiting: 19 });
  });

  it('gives the messages of one asset one after the other, and those of others meanwhile', async () => {
    const store = sqlStore(await open());
    await register(store);
    const other = '00000000-0000-4000-8000-000000000077';
    await store.commit([motion(1), motion(2), motion(3, other), motion(4, asset_id, true)], now_ms);
    const seqsOf = (some: readonly { time_ms: number }[]) => some.map(({ time_ms }) => time_ms - start_ms);
    const first = await claim(store, 'a');
    expect(seqsOf(first).toSorted((a, b) => a - b)).toEqual([1, 3]);
    expect(await claim(store, 'b')).toEqual([]);
    const mine = first.find(({ time_ms }) => time_ms === start_ms + 1)?.id ?? '';
    // One that failed waits for its next attempt, and those behind it do not.
    await settle(store, failed(mine, 'a'));
    const second = await claim(store, 'c', now_ms + 4_999);
    expect(seqsOf(second)).toEqual([2]);
    await settle(store, { webhook_id, id: second[0]?.id ?? '', lease: 'c', kind: 'delivered', now_ms });
    expect(seqsOf(await claim(store, 'd', now_ms + 5_000))).toEqual([4]);
  });

  it('gets kit.offline of a kit that falls silent, once, and kit.online when it sends again', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    const born = received({ channel: channels.state, seq: 1, data: samples['kitState'] ?? {} });
    await store.commit([born], now_ms);
    const typesNow = async () => {
      const rows = await database.all('SELECT type, body FROM webhook_messages ORDER BY queued_ms, type');
      return rows.map(({ type }) => type);
    };
    const silent_ms = now_ms + silent_after_ms;
    expect(await store.noteSilences(silent_ms - 1)).toBe(false);
    expect(await store.noteSilences(silent_ms)).toBe(true);
    expect(await store.noteSilences(silent_ms + 60_000)).toBe(false);
    expect(await typesNow()).toEqual(['kit.online', 'kit.offline']);
    const [, offline] = await database.all('SELECT body FROM webhook_messages ORDER BY queued_ms');
    expect(webhookBodies['kit.offline'].parse(JSON.parse(String(offline?.['body'])))).toMatchObject({
      timestamp: new Date(silent_ms).toISOString(),
      data: { kit_id, reason: 'silent' },
    });
    await store.commit([motion(5)], silent_ms + 120_000);
    expect(await store.noteSilences(silent_ms + 120_001)).toBe(true);
    expect((await typesNow()).at(-1)).toBe('kit.online');
    expect(await store.noteSilences(silent_ms + 120_002)).toBe(false);
    // One that says goodbye after its silence is announced by that, and so is its next birth.
    const late_ms = silent_ms + 120_000 + silent_after_ms;
    expect(await store.noteSilences(late_ms)).toBe(true);
    const state = (seq: number, online: boolean) =>
      received({
        channel: channels.state,
        seq,
        epoch: 18,
        data: { ...samples['kitState'], epoch: 18, online, reason: online ? null : 'stopped' },
        time_ms: late_ms + seq,
      });
    await store.commit([state(1, false)], late_ms + 1);
    expect(await store.noteSilences(late_ms + 2)).toBe(false);
  });

  it('reports when to search again', async () => {
    const store = sqlStore(await open());
    await register(store);
    expect(await store.nextDue(now_ms)).toBeUndefined();
    await store.commit([motion(1)], now_ms);
    expect(await store.nextDue(now_ms + 5)).toBe(now_ms + 5);
    const [message] = await claim(store, 'a');
    expect(await store.nextDue(now_ms + 5)).toBe(now_ms + 5);
    await settle(
      store,
      failed(message?.id ?? '', 'a', { retry_ms: now_ms + 300_000, pause_until_ms: now_ms + 5_000 }),
    );
    expect(await store.nextDue(now_ms + 5)).toBe(now_ms + 300_000);
    await store.changeWebhook(webhook_id, { disabled_reason: 'disabled by a client' });
    expect(await store.nextDue(now_ms + 5)).toBeUndefined();
  });

  it('keeps its books through failures, dead letters, replay, purge and erasure', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    await store.commit(
      Array.from({ length: 6 }, (_, n) => motion(n + 1)),
      now_ms,
    );
    for (let n = 0; n < 4; n += 1) {
      const [message] = await claim(store, 'a');
      await settle(store, failed(message?.id ?? '', 'a', { retry_ms: null }));
    }
    expect(await counts(database, store)).toMatchObject({ accepted: 6, waiting: 2, dead: 4 });
    const dead = await store.deadMessages({ webhook_id, limit: 3 });
    const last = dead.at(-1);
    const after = last && { dead_ms: last.dead_ms ?? 0, id: last.id };
    expect([dead.length, (await store.deadMessages({ webhook_id, limit: 3, after })).length]).toEqual([3, 1]);
    expect(await store.replayDead(webhook_id, [dead[0]?.id ?? ''], now_ms)).toBe(1);
    expect(await store.purgeDead(webhook_id, [dead[1]?.id ?? ''])).toBe(1);
    expect(await counts(database, store)).toMatchObject({ accepted: 6, waiting: 3, dead: 2, purged: 1 });
    const again = await claimAll(store, now_ms);
    expect(again.find(({ id }) => id === dead[0]?.id)?.attempts).toBe(1);
    await store.eraseHistory({ kit_id, asset_id, before_ms: now_ms }, now_ms);
    expect(await counts(database, store)).toMatchObject({ accepted: 6, waiting: 0, dead: 0, purged: 6 });
  });

  it('puts what comes beyond its limit into the dead-letter list', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    await database.all('UPDATE webhooks SET accepted = ?', waiting_max - 1);
    await store.commit([motion(1), motion(2), motion(3)], now_ms);
    const dead = await store.deadMessages({ webhook_id, limit: 10 });
    expect(dead.map(({ reason }) => reason)).toEqual(Array(2).fill(texts.queue_full));
    expect((await store.webhook(webhook_id))?.counts).toMatchObject({ waiting: waiting_max, dead: 2 });
  });

  it('pauses a receiver that fails, and disables it when it has failed for long', async () => {
    const database = await open();
    const store = sqlStore(database);
    await register(store);
    await store.commit(motions(2), now_ms);
    const [one, two] = await claim(store, 'a');
    const disable = { reason: 'every delivery failed for 72 h', failing_since_ms: now_ms - 1 };
    expect(await settle(store, failed(one?.id ?? '', 'a', { disable }))).toEqual({ disabled: false });
    expect(await store.dueWebhooks(now_ms + 4_999)).toEqual([]);
    expect(await store.dueWebhooks(now_ms + 5_000)).toMatchObject([
      { failures: 1, failing_since_ms: now_ms },
    ]);
    const later = { now_ms: now_ms + 10, disable: { ...disable, failing_since_ms: now_ms } };
    expect(await settle(store, failed(two?.id ?? '', 'a', later))).toEqual({ disabled: true });
    await store.commit([motion(3)], now_ms);
    expect(await store.webhook(webhook_id)).toMatchObject({
      disabled_reason: disable.reason,
      counts: { missed: 1 },
    });
    expect(await store.dueWebhooks(now_ms + 3_600_000)).toEqual([]);
    await store.changeWebhook(webhook_id, { disabled_reason: null });
    expect(await store.dueWebhooks(now_ms + 3_600_000)).toHaveLength(1);
    expect(await counts(database, store)).toMatchObject({ accepted: 2, waiting: 2 });
  });

  // A receiver that gets nothing any more must not look enabled (planningcenter/developers#1312, elastic/kibana#211636).
  it('gets nothing and delivers nothing without the key of its registration, and shows that', async () => {
    const store = sqlStore(await open());
    const operations = new WebhookOperations({
      timeout_ms: 1_000,
      store,
      policy: new AddressPolicy({ allow: [], allow_http: false }),
      now: () => now_ms + 1_000,
      wake: () => undefined,
    });
    const { key } = makeKey({ label: 'other', scopes: ['webhooks'], kits: '*', expires_ms: null }, now_ms);
    const { key_id } = await register(store);
    await store.commit([motion(1)], now_ms);
    await store.revokeKey(key_id);
    await store.commit([motion(2)], now_ms);
    expect(await store.dueWebhooks(now_ms)).toEqual([]);
    expect(await operations.get(key, webhook_id)).toMatchObject({
      status: 'disabled',
      disabled_reason: texts.key_revoked,
      counts: { accepted: 1, missed: 1 },
    });
    await store.addKey({ ...key, expires_ms: now_ms + 1_000 });
    const taken = await operations.change(key, webhook_id, { enabled: true });
    expect(taken.disabled_reason).toBe(texts.key_expired(new Date(now_ms + 1_000).toISOString()));
    await store.commit([motion(3)], now_ms + 999);
    await store.commit([motion(4)], now_ms + 1_000);
    expect((await operations.get(key, webhook_id)).counts).toMatchObject({ accepted: 2, missed: 2 });
  });
});
