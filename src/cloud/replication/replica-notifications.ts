/** Notifies the other replicas on the same PostgreSQL of each change, so that the WebSockets of all replicas send it. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { z } from 'zod';
import { jsonObject } from '../../contract/json.ts';
import { messageOf } from '../../platform/errors.ts';
import { backoff, every, sleep, within } from '../../platform/time.ts';
import { alarmStates } from '../api/alarm-resources.ts';
import type { Changes } from '../changes.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Queries } from '../sql/database.ts';
import { keyOf } from '../live/snapshot.ts';
import { replica_channel, replica_probe } from '../sql/inspect.ts';
import { Addresses, connectionOf, type PostgresOptions } from '../sql/postgres.ts';
import { latestTasks } from '../task-pages.ts';
import type { Change } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import { file_states } from '../files/file-store.ts';
import type { Store } from '../store/sql-store.ts';

/** Answers to viewers of video, which are of use for seconds. */
const answers_channel = 'kit_answers';
/** PostgreSQL takes less than 8,000 bytes in one notification. */
const payload_bytes_max = 7_900;
/** Of a change with its message. */
const message_bytes_max = 2_000;
const pause_ms = { first: 200, max: 10_000 } as const;
/** Interval of a query that detects a dead connection; a connection that only listens would not notice. */
const probe_ms = 10_000;
const end_ms = 1_000;
/** Limit of pending notifications; beyond it they are dropped, and everything is sent again when the queue is empty. */
const notices_max = 1_000;
/** Tasks of a kit that are sent again after a gap, as many as in a snapshot. */
const tasks_resent = 50;
/** The newest files of a kit, also deleted ones. */
const files_resent = 50;
/** Alarms that changed within this time are sent again after a gap. */
const alarms_resent_ms = 3_600_000;
const alarms_resent = 1_000;

const ids = { kit_id: z.string(), asset_id: z.string() };
/** A change in short form: the receiver reads the rest from the database, except for small messages, which are included. */
const news = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['kit', 'kit_gone']), kit_id: ids.kit_id }),
  z.object({ kind: z.enum(['asset', 'commands', 'asset_gone']), ...ids }),
  z.object({ kind: z.literal('task'), kit_id: ids.kit_id, task_id: z.string() }),
  z.object({ kind: z.literal('alarm'), kit_id: ids.kit_id, alarm_id: z.string() }),
  z.object({ kind: z.literal('file'), kit_id: ids.kit_id, file_id: z.string() }),
  z.object({
    kind: z.literal('feed'),
    ...ids,
    message: z.object({ feed: z.string(), time_ms: z.number(), data: jsonObject.optional() }),
  }),
]);
type News = z.output<typeof news>;

/** Kinds of a later version are left out, and the rest of their notice is not. */
const notice = z.object({
  from: z.string(),
  news: z.array(z.union([news, z.unknown().transform(() => undefined)])),
});

export interface ReplicaNotificationsParts {
  readonly options: PostgresOptions;
  readonly changes: Changes;
  readonly store: Store;
  readonly log: ServiceLog;
  /** An answer to a viewer that came to another replica. Left out: nobody waits for any. */
  readonly onAnswer?: ((text: string) => void) | undefined;
}

export class ReplicaNotifications {
  /** Marks our own notifications, which are ignored on receipt. */
  readonly #id = randomUUID();

  /** Notifies the others if and when the transaction of `queries` commits. */
  async notify(queries: Queries, changes: readonly Change[]): Promise<void> {
    const payloads = payloadsOf(this.#id, changes);
    const told = payloads.map(async (payload) =>
      queries.all('SELECT pg_notify(?, ?)', replica_channel, payload),
    );
    await Promise.allSettled(told);
    await Promise.all(told);
  }

  async passAnswer(queries: Queries, text: string): Promise<void> {
    if (Buffer.byteLength(text) > payload_bytes_max) throw new RangeError(texts.answer_too_long);
    await queries.all('SELECT pg_notify(?, ?)', answers_channel, text);
  }

  /** Passes the changes of other replicas to `changes` until `signal` aborts. */
  async listen(parts: ReplicaNotificationsParts, signal: AbortSignal): Promise<void> {
    const { log, options } = parts;
    const addresses = new Addresses(options.url);
    let pauses = backoff(pause_ms.first, pause_ms.max);
    let isLost = false;
    while (!signal.aborted) {
      try {
        const here = { ...parts, options: { ...options, url: addresses.current } };
        await this.#listenOnce(here, signal, async () => {
          if (isLost) log.info({}, texts.log_replicas_restored);
          // Notifications sent meanwhile are lost; the data is in the database.
          if (isLost) await publishEverything(parts);
          isLost = false;
          pauses = backoff(pause_ms.first, pause_ms.max);
        });
      } catch (error) {
        if (!isLost && !signal.aborted) {
          log.warn({ reason: messageOf(error) }, texts.log_replicas_lost);
        }
        isLost = true;
        addresses.failed(addresses.current);
      }
      await sleep(pauses.next().value, signal);
    }
  }

  async #listenOnce(
    parts: ReplicaNotificationsParts,
    signal: AbortSignal,
    onUp: () => Promise<void>,
  ): Promise<void> {
    const client = new Client(connectionOf(parts.options));
    const over = new AbortController();
    const ended = new Promise<never>((_, reject) => {
      client.on('error', reject);
      client.on('end', () => reject(new Error('connection closed')));
      every(probe_ms, over.signal, () => void client.query(replica_probe).catch(reject));
    });
    ended.catch(() => undefined);
    const receive = this.#receiver(parts);
    client.on('notification', ({ channel: name, payload }) => {
      if (name === answers_channel) parts.onAnswer?.(payload ?? '');
      else receive(payload);
    });
    const stop = (): void => void client.end().catch(() => undefined);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await client.connect();
      await client.query(`LISTEN ${replica_channel}; LISTEN ${answers_channel}`);
      await onUp();
      await ended;
    } finally {
      over.abort();
      signal.removeEventListener('abort', stop);
      await within(end_ms, client.end());
    }
  }

  /** Processes notifications in the order of arrival, though some data is read from the database first. */
  #receiver(parts: ReplicaNotificationsParts): (payload: string | undefined) => void {
    let last: Promise<void> = Promise.resolve();
    let waiting = 0;
    let isBehind = false;
    const process = async (payload: string | undefined): Promise<void> => {
      try {
        await this.#receive(parts, payload);
        if (waiting === 1 && isBehind) {
          isBehind = false;
          await publishEverything(parts);
        }
      } catch {
        // The database does not answer: the listening connection fails as well, and everything is sent after its restart.
      } finally {
        waiting -= 1;
      }
    };
    return (payload) => {
      if (waiting >= notices_max) isBehind = true;
      else {
        waiting += 1;
        last = last.then(async () => process(payload));
      }
    };
  }

  async #receive({ changes, store }: ReplicaNotificationsParts, payload: string | undefined): Promise<void> {
    const received = notice.safeParse(JSON.parse(payload ?? 'null'));
    if (!received.success || received.data.from === this.#id) return;
    for (const each of received.data.news) {
      if (!each || !changes.isSubscribed(each.kit_id)) continue;
      const change = await changeOf(store, each);
      if (change) changes.publish([change]);
    }
  }
}

/** Packs the changes into as few payloads as possible. Of two changes of the same thing in one commit only the later one is sent. */
function payloadsOf(from: string, changes: readonly Change[]): readonly string[] {
  const frame = Buffer.byteLength(JSON.stringify({ from, news: [] }));
  const payloads: string[] = [];
  let texts: string[] = [];
  let bytes = frame;
  const finish = (): void => {
    if (texts.length > 0) payloads.push(`{"from":"${from}","news":[${texts.join(',')}]}`);
    texts = [];
    bytes = frame;
  };
  for (const text of newest(changes)) {
    const size = Buffer.byteLength(text) + 1;
    if (bytes + size > payload_bytes_max) finish();
    texts.push(text);
    bytes += size;
  }
  finish();
  return payloads;
}

function newest(changes: readonly Change[]): Iterable<string> {
  const byThing = new Map<string, string>();
  for (const change of changes) byThing.set(`${change.kit_id} ${keyOf(change)}`, written(change));
  return byThing.values();
}

/** Serialises a change; a message that is too large for a notification is left out, and the receiver reads it. */
function written(change: Change): string {
  const news = newsOf(change);
  const text = JSON.stringify(news);
  if (news.kind !== 'feed' || Buffer.byteLength(text) <= message_bytes_max) return text;
  const { feed, time_ms } = news.message;
  return JSON.stringify({ ...news, message: { feed, time_ms } });
}

function newsOf(change: Change): News {
  if (change.kind === 'kit') return { kind: 'kit', kit_id: change.kit_id };
  if (change.kind === 'alarm')
    return { kind: 'alarm', kit_id: change.kit_id, alarm_id: change.alarm.alarm_id };
  return change.kind === 'task'
    ? { kind: 'task', kit_id: change.kit_id, task_id: change.task.task_id }
    : change;
}

async function changeOf(store: Store, each: News): Promise<Change | undefined> {
  if (each.kind === 'task') {
    const { kind, kit_id, task_id } = each;
    const task = await store.task(kit_id, task_id);
    return task && { kind, kit_id, task };
  }
  if (each.kind === 'alarm') {
    const { kind, kit_id, alarm_id } = each;
    const alarm = await store.alarm(kit_id, alarm_id);
    return alarm && { kind, kit_id, alarm };
  }
  if (each.kind !== 'feed') return each;
  const { kind, kit_id, asset_id, message } = each;
  const { feed, time_ms, data } = message;
  if (data) return { kind, kit_id, asset_id, message: { feed, time_ms, data } };
  const stored = (await store.feeds(kit_id, asset_id)).find((one) => one.feed === feed);
  return stored && { kind, kit_id, asset_id, message: stored };
}

/** Sends everything that a subscriber may have missed, from the database. */
async function publishEverything({ changes, store }: ReplicaNotificationsParts): Promise<void> {
  if (changes.hasFleetSubscribers) {
    const kit_ids = await store.kitIds();
    changes.publish(kit_ids.map((kit_id) => ({ kind: 'kit', kit_id })));
    const now_ms = Date.now();
    const query = {
      kits: '*',
      states: alarmStates,
      changed_after_ms: now_ms - alarms_resent_ms,
      now_ms,
    } as const;
    const alarms = await store.alarms({ ...query, limit: alarms_resent });
    changes.publish(alarms.map((alarm) => ({ kind: 'alarm', kit_id: alarm.kit_id, alarm })));
  }
  for (const kit_id of changes.subscribedKits()) {
    const all: Change[] = [{ kind: 'kit', kit_id }];
    for (const { id: asset_id } of await store.assets(kit_id)) {
      all.push({ kind: 'asset', kit_id, asset_id }, { kind: 'commands', kit_id, asset_id });
      const feeds = await store.feeds(kit_id, asset_id);
      all.push(...feeds.map((message): Change => ({ kind: 'feed', kit_id, asset_id, message })));
    }
    const tasks = await latestTasks(store, kit_id, tasks_resent);
    all.push(...tasks.map((task): Change => ({ kind: 'task', kit_id, task })));
    const files = await store.files(kit_id, { states: file_states, limit: files_resent });
    all.push(...files.map(({ file_id }): Change => ({ kind: 'file', kit_id, file_id })));
    changes.publish(all);
  }
}
