/** What storing costs: live messages of many kits, and batches from the buffer of one, on PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import type { HistoryMessage } from '../../../src/cloud/history/message.ts';
import { readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import { ReplicaNotifications } from '../../../src/cloud/replication/replica-notifications.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { familySeconds } from '../../support/process-stats.ts';
import type { Postgres } from '../../support/database/postgres.ts';
import { median } from '../figure.ts';
import { KitMessages } from './kit-messages.ts';

const live_kits = 500;
const warm_commits = 8;
const live_commits = 100;
const batch_messages = 4_000;
const batches = 6;
const hour_ms = 3_600_000;

export interface Cost {
  readonly per_s: number;
  /** Processor time of the service and of the database for a message. */
  readonly cpu_us: number;
}

/** Stores the receptions of one transaction. */
type Commit = (receptions: readonly Reception[]) => Promise<unknown>;

const live_ways = ['history', 'no_history'] as const;
type LiveWay = (typeof live_ways)[number];

/** Commits, without the reading of the messages, which is the same for both. Rounds alternate, so that a busy moment of the machine does not hit one way alone. */
export async function measureLive(
  server: Postgres,
  rounds: number,
): Promise<Readonly<Record<LiveWay, Cost>>> {
  const costs = new Map<LiveWay, Cost[]>(live_ways.map((way) => [way, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const way of live_ways) {
      const kits = Array.from({ length: live_kits }, (_, n) => new KitMessages(randomUUID(), Date.now(), n));
      // Not all of them send a position at the same time.
      for (const [n, kit] of kits.entries()) kit.take(n % 100);
      const commits = Array.from({ length: warm_commits + live_commits }, () =>
        kits.map((kit) => loneOf(kit.kit_id, kit.next())),
      );
      const cost = await withStore(server, `${way}_${round}`, way === 'history', async (commit) => {
        for (const payloads of commits.slice(0, warm_commits)) await commit(payloads.map(read));
        return costOf(server, live_kits * live_commits, async (measured) => {
          for (const payloads of commits.slice(warm_commits)) {
            const receptions = payloads.map(read);
            await measured(async () => commit(receptions));
          }
        });
      });
      costs.get(way)?.push(cost);
    }
  }
  const middle = (way: LiveWay): Cost => {
    const all = costs.get(way) ?? [];
    return { per_s: median(all.map(({ per_s }) => per_s)), cpu_us: median(all.map(({ cpu_us }) => cpu_us)) };
  };
  return { history: middle('history'), no_history: middle('no_history') };
}

/** Batches of one kit, one a transaction, from their bytes on. */
export async function measureHistorical(server: Postgres): Promise<Cost> {
  const kit = new KitMessages(randomUUID(), Date.now() - 24 * hour_ms);
  const packed = Array.from({ length: batches + 1 }, () => packedOf(kit.kit_id, kit.take(batch_messages)));
  return withStore(server, 'historical', true, async (commit) => {
    const [first, ...others] = packed;
    if (first) await commit([read(first)]);
    return costOf(server, batch_messages * others.length, async (measured) => {
      for (const each of others) await measured(async () => commit([read(each)]));
    });
  });
}

async function withStore<T>(
  server: Postgres,
  name: string,
  keepsHistory: boolean,
  work: (commit: Commit) => Promise<T>,
): Promise<T> {
  const database = await openPostgres({ url: await server.newDatabase(name), password: server.password });
  const replicas = new ReplicaNotifications();
  const announce: NonNullable<Parameters<typeof sqlStore>[1]>['announce'] = async (queries, changes) =>
    replicas.notify(queries, changes);
  const store = sqlStore(database, { keepsHistory, announce });
  try {
    return await work(async (receptions) => store.commit(receptions, Date.now()));
  } finally {
    await database.close();
  }
}

/** What the measured parts of `work` cost; the server does nothing beside them. */
async function costOf(
  server: Postgres,
  messages: number,
  work: (measured: (part: () => Promise<unknown>) => Promise<void>) => Promise<void>,
): Promise<Cost> {
  let [took_ms, cpu_us] = [0, 0];
  const before_s = await familySeconds(server.pid());
  await work(async (part) => {
    const before = process.cpuUsage();
    const start_ms = performance.now();
    await part();
    took_ms += performance.now() - start_ms;
    const { user, system } = process.cpuUsage(before);
    cpu_us += user + system;
  });
  const server_s = (await familySeconds(server.pid())) - before_s;
  return { per_s: (messages * 1_000) / took_ms, cpu_us: (cpu_us + server_s * 1e6) / messages };
}

interface Payload {
  readonly topic: string;
  readonly bytes: Uint8Array;
}

function loneOf(kit_id: string, { channel, epoch, seq, time_ms, data }: HistoryMessage): Payload {
  return {
    topic: upTopic(kit_id, channel),
    bytes: Buffer.from(writeEnvelope({ epoch, seq, time_ms }, data)),
  };
}

function packedOf(kit_id: string, messages: readonly HistoryMessage[]): Payload {
  return {
    topic: upTopic(kit_id, channels.batch),
    bytes: packBatch(messages.map(itemOf), { historical: true }),
  };
}

function itemOf({ channel, epoch, seq, time_ms, data }: HistoryMessage) {
  return { channel, epoch, seq, time_ms, data };
}

/** The next messages of this kit as it sends what it has buffered. */
export function batchOf(kit: KitMessages, messages: number): Reception {
  return read(packedOf(kit.kit_id, kit.take(messages)));
}

function read({ topic, bytes }: Payload): Reception {
  const reception = readMessage(topic, bytes);
  if (!reception || reception.faults.length > 0) throw new Error(`not read: ${reception?.faults[0]?.reason}`);
  return reception;
}
