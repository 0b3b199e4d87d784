/** What replicas on one PostgreSQL tell each other: each change, so that a WebSocket of any of them sees it. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { z } from 'zod';
import { jsonObject } from '../contract/json.ts';
import { messageOf } from '../errors.ts';
import { backoff, every, sleep, within } from '../platform/time.ts';
import type { Changes } from './changes.ts';
import type { ServiceLog } from './service-log.ts';
import type { Queries } from './store/database.ts';
import { keyOf } from './live/snapshot.ts';
import { connectionOf, type PostgresOptions } from './store/postgres.ts';
import type { Change, Store } from './store/store.ts';

const channel = 'kit_changes';
/** PostgreSQL takes less than 8,000 bytes in one notification. */
const payload_bytes_max = 7_900;
/** Of a change with its message. */
const message_bytes_max = 2_000;
const pause_ms = { first: 200, max: 10_000 } as const;
/** A connection that only listens would not notice that the other end is gone. */
const look_ms = 10_000;
const end_ms = 1_000;
/** Notices that wait to be told; beyond it they are left out, and everything is told when the others are through. */
const notices_max = 1_000;
/** Tasks of a kit that are told again after a gap; those that a snapshot has. */
const tasks_told = 50;

const ids = { kit_id: z.string(), asset_id: z.string() };
/** A change in short: who hears it reads the rest from the database, but for messages that are small enough to come along. */
const news = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('kit'), kit_id: ids.kit_id }),
  z.object({ kind: z.literal('asset'), ...ids }),
  z.object({ kind: z.literal('commands'), ...ids }),
  z.object({ kind: z.literal('asset_gone'), ...ids }),
  z.object({ kind: z.literal('task'), kit_id: ids.kit_id, task_id: z.string() }),
  z.object({
    kind: z.literal('feed'),
    ...ids,
    message: z.object({ feed: z.string(), time_ms: z.number(), data: jsonObject.optional() }),
  }),
]);
type News = z.output<typeof news>;

const notice = z.object({ from: z.string(), news: z.array(news) });

export interface NeighbourParts {
  readonly options: PostgresOptions;
  readonly changes: Changes;
  readonly store: Store;
  readonly log: ServiceLog;
}

export class Neighbours {
  /** Tells our own notifications from those of the others. */
  readonly #id = randomUUID();

  /** Tells the others, when and only when the transaction of `queries` commits. */
  async tell(queries: Queries, changes: readonly Change[]): Promise<void> {
    for (const payload of payloadsOf(this.#id, changes)) {
      await queries.all('SELECT pg_notify(?, ?)', channel, payload);
    }
  }

  /** Tells `changes` what the others have stored, until `signal` aborts. */
  async listen(parts: NeighbourParts, signal: AbortSignal): Promise<void> {
    const { log } = parts;
    let pauses = backoff(pause_ms.first, pause_ms.max);
    let isLost = false;
    while (!signal.aborted) {
      try {
        await this.#listenOnce(parts, signal, async () => {
          if (isLost) log.info({}, 'the service hears its other replicas again');
          // What they told meanwhile is lost, and stands in the database.
          if (isLost) await tellEverything(parts);
          isLost = false;
          pauses = backoff(pause_ms.first, pause_ms.max);
        });
      } catch (error) {
        if (!isLost && !signal.aborted) {
          log.warn(
            { reason: messageOf(error) },
            'the service does not hear its other replicas: it tries again',
          );
        }
        isLost = true;
      }
      await sleep(pauses.next().value, signal);
    }
  }

  async #listenOnce(parts: NeighbourParts, signal: AbortSignal, onUp: () => Promise<void>): Promise<void> {
    const client = new Client(connectionOf(parts.options));
    const over = new AbortController();
    const ended = new Promise<never>((_, reject) => {
      client.on('error', reject);
      client.on('end', () => reject(new Error('the connection ended')));
      every(look_ms, over.signal, () => void client.query('SELECT 1').catch(reject));
    });
    ended.catch(() => undefined);
    const hear = this.#hearer(parts);
    client.on('notification', ({ payload }) => hear(payload));
    const stop = (): void => void client.end().catch(() => undefined);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      await onUp();
      await ended;
    } finally {
      over.abort();
      signal.removeEventListener('abort', stop);
      await within(end_ms, client.end());
    }
  }

  /** Takes notices in the order in which they come, though some of what they tell is read from the database first. */
  #hearer(parts: NeighbourParts): (payload: string | undefined) => void {
    let last: Promise<void> = Promise.resolve();
    let waiting = 0;
    let isBehind = false;
    const tell = async (payload: string | undefined): Promise<void> => {
      try {
        await this.#hear(parts, payload);
        if (waiting === 1 && isBehind) {
          isBehind = false;
          await tellEverything(parts);
        }
      } catch {
        // The database does not answer: the connection that listens will notice, and everything is told when it is back.
      } finally {
        waiting -= 1;
      }
    };
    return (payload) => {
      if (waiting >= notices_max) isBehind = true;
      else {
        waiting += 1;
        last = last.then(async () => tell(payload));
      }
    };
  }

  async #hear({ changes, store }: NeighbourParts, payload: string | undefined): Promise<void> {
    const heard = notice.safeParse(JSON.parse(payload ?? 'null'));
    if (!heard.success || heard.data.from === this.#id) return;
    for (const each of heard.data.news) {
      if (!changes.isWatched(each.kit_id)) continue;
      const change = await changeOf(store, each);
      if (change) changes.tell([change]);
    }
  }
}

/** As few payloads as hold all the news. Two news of the same thing in one commit: the later one tells all. */
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

/** A message that is too large for a notification is left out: the others read it. */
function written(change: Change): string {
  const news = newsOf(change);
  const text = JSON.stringify(news);
  if (news.kind !== 'feed' || Buffer.byteLength(text) <= message_bytes_max) return text;
  const { feed, time_ms } = news.message;
  return JSON.stringify({ ...news, message: { feed, time_ms } });
}

function newsOf(change: Change): News {
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
  if (each.kind !== 'feed') return each;
  const { kind, kit_id, asset_id, message } = each;
  const { feed, time_ms, data } = message;
  if (data) return { kind, kit_id, asset_id, message: { feed, time_ms, data } };
  const stored = (await store.feeds(kit_id, asset_id)).find((one) => one.feed === feed);
  return stored && { kind, kit_id, asset_id, message: stored };
}

/** Whatever a watcher may have missed, as it stands in the database. */
async function tellEverything({ changes, store }: NeighbourParts): Promise<void> {
  for (const kit_id of changes.watched()) {
    const all: Change[] = [{ kind: 'kit', kit_id }];
    for (const { id: asset_id } of await store.assets(kit_id)) {
      all.push({ kind: 'asset', kit_id, asset_id }, { kind: 'commands', kit_id, asset_id });
      const feeds = await store.feeds(kit_id, asset_id);
      all.push(...feeds.map((message): Change => ({ kind: 'feed', kit_id, asset_id, message })));
    }
    const tasks = await store.tasks(kit_id, { limit: tasks_told });
    all.push(...tasks.map((task): Change => ({ kind: 'task', kit_id, task })));
    changes.tell(all);
  }
}
