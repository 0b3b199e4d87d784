/** Kill after kill of the standalone service, and the account: what it had acknowledged must be in its database. */
import { randomUUID } from 'node:crypto';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { unpackBatch } from '../../../src/contract/batch/batch.ts';
import { channels, parseUp } from '../../../src/contract/topics.ts';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { readStored } from '../../../src/cloud/stored/received/received-numbers.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { sleep } from '../../../src/platform/time.ts';
import { startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { type Delivery, startMqttTap } from '../../support/brokers/mqtt-tap.ts';
import { startPostgres } from '../../support/database/postgres.ts';
import { withDirectory } from '../../support/temporary.ts';
import { alarm_feed, epoch, PublishingKit } from './published.ts';
import { freePort } from '../../support/ports.ts';

export type ServiceDatabase = 'SQLite' | 'PostgreSQL';

export interface ServiceAccount {
  /** Messages that the broker had accepted from the kits, repetitions not counted. */
  readonly published: number;
  /** Of these, never stored. */
  readonly lost: number;
  /** Acknowledged by the service with PUBACK; of these, not in the database after a kill or at the end. */
  readonly acknowledged: number;
  readonly acknowledged_not_stored: number;
  /** Named in `down/ack`; likewise. */
  readonly named: number;
  readonly named_not_stored: number;
  /** Named in `down/ack` and never sent by the kit. */
  readonly invented: number;
  /** Came more than once. */
  readonly duplicates: number;
  /** Alarms that the kits began, each one thing that began once. */
  readonly alarms: number;
  /** Of these: not there, there more than once or counted more than once, and open or closed against what the kit sent. */
  readonly alarms_lost: number;
  readonly alarms_doubled: number;
  readonly alarms_wrong: number;
  /** Channels whose newest value is not the one in the database. */
  readonly stale: readonly string[];
  /** Killed before it was connected. */
  readonly early: number;
  readonly integrity: string;
  readonly seconds: number;
}

const kits_of_campaign = 3;
const per_second = 120;
/** A busy machine would leave more and more to the broker, which answers a connection behind all of it. */
const left_max = 2_000;
/** Most are killed soon, which costs little, and a fifth after `down/ack` was sent, which is once a second. */
const run_max_ms = 1_600;
/** A process starts late where others keep the processors busy. */
const connects_within_ms = 120_000;
/** Some are killed while they start. */
const early_every = 8;
const early_max_ms = 900;
const settle_ms = 60_000;
const poll_ms = 500;

/** Kills the standalone service with SIGKILL at random moments while kits publish. */
export async function killServices(kills: number, kind: ServiceDatabase): Promise<ServiceAccount> {
  return withDirectory(async (dir) =>
    withDatabase(kind, dir, async (place) => {
      const begin_ms = performance.now();
      const broker = await startMosquitto({ conf: unthrottled });
      const acknowledged = new Map<string, Set<number>>();
      const tap = await startMqttTap(broker.port, (delivery) => noteDelivery(acknowledged, delivery));
      const config = join(dir, 'service.yaml');
      const listen = `127.0.0.1:${await freePort()}`;
      const settings = { broker: { url: `mqtt://127.0.0.1:${tap.port}` }, ...place.section, listen };
      await writeFile(config, JSON.stringify(settings));
      const start = (): Child => startChild([command_file, 'service', '--config', config]);
      const ends = new AbortController();
      // The session of the service must be there before the first message, or the broker has nobody to keep it for.
      const first = start();
      await first.printed(/service connected to the broker/u, connects_within_ms);
      await first.end('SIGKILL');
      const kits = await Promise.all(
        Array.from({ length: kits_of_campaign }, async () =>
          PublishingKit.connect(randomUUID(), broker.port),
        ),
      );
      for (const kit of kits) {
        const left = (): number => kit.published.size - (acknowledged.get(kit.kit_id)?.size ?? 0);
        kit.publish(per_second, ends.signal, () => left() > left_max);
      }
      const missing = { acknowledged: 0, named: 0 };
      let early = 0;
      for (let kill = 0; kill < kills; kill += 1) {
        const child = start();
        if (kill % early_every === 0) {
          early += 1;
          await sleep(Math.random() * early_max_ms, ends.signal);
        } else {
          await child.printed(/service connected to the broker/u, connects_within_ms);
          await sleep(Math.random() ** 2 * run_max_ms, ends.signal);
        }
        await child.end('SIGKILL');
        await place.look(async (database) => countMissing({ database, kits, acknowledged }, missing));
      }
      ends.abort();
      await eventually('the broker has everything', () => kits.every(({ isQuiet }) => isQuiet));
      const last = start();
      await settled(async () => place.look(async (database) => lostOf(database, kits)));
      await eventually(
        'the last ones are named',
        () => kits.every(({ published, named }) => [...published].every((seq) => named.has(seq))),
        settle_ms,
      ).catch(() => undefined);
      await last.end('SIGTERM');
      const account = await place.look(async (database) => {
        await countMissing({ database, kits, acknowledged }, missing);
        return {
          lost: await lostOf(database, kits),
          stale: await staleOf(database, kits),
          ...(await alarmsOf(database, kits)),
          duplicates: await duplicatesOf(database, kits),
        };
      });
      for (const kit of kits) kit.leave();
      await tap.close();
      await broker.stop();
      const sum = (count: (kit: PublishingKit) => number): number =>
        kits.reduce((total, kit) => total + count(kit), 0);
      return {
        ...account,
        published: sum(({ published }) => published.size),
        acknowledged: sum(({ kit_id }) => acknowledged.get(kit_id)?.size ?? 0),
        acknowledged_not_stored: missing.acknowledged,
        named: sum(({ named }) => named.size),
        named_not_stored: missing.named,
        invented: sum(({ invented }) => invented.size),
        early,
        integrity: await place.integrity(),
        seconds: (performance.now() - begin_ms) / 1_000,
      };
    }),
  );
}

/** Waits while something is left and becomes less: on a busy machine the broker has kept most of the messages for the last start. */
async function settled(left: () => Promise<number>): Promise<void> {
  let least = Infinity;
  let at_ms = performance.now();
  for (;;) {
    const now = await left();
    if (now < least) [least, at_ms] = [now, performance.now()];
    if (now === 0 || performance.now() - at_ms > settle_ms) return;
    await sleep(poll_ms, new AbortController().signal);
  }
}

interface Place {
  /** What the configuration says about it. */
  readonly section: { readonly database: string; readonly database_password_file?: string };
  /** Looks into the database without touching what the next start finds. */
  look<T>(at: (database: Database) => Promise<T>): Promise<T>;
  integrity(): Promise<string>;
}

async function withDatabase<T>(
  kind: ServiceDatabase,
  dir: string,
  fn: (place: Place) => Promise<T>,
): Promise<T> {
  if (kind === 'SQLite') return fn(sqlitePlace(dir));
  const server = await startPostgres({ durable: true });
  try {
    const name = await server.newDatabase('kits');
    const database = await openPostgres({ url: name, password: server.password });
    try {
      const database_password_file = join(dir, 'postgres-password');
      await writeFile(database_password_file, `${server.password}\n`, { mode: 0o600 });
      const section = { database: name, database_password_file };
      return await fn({ section, look: async (at) => at(database), integrity: async () => 'ok' });
    } finally {
      await database.close();
    }
  } finally {
    await server.stop();
  }
}

/** To open the file itself would finish its log, which the killed service left to the next one. */
function sqlitePlace(dir: string): Place {
  const file = join(dir, 'service.db');
  const copy = join(dir, 'copy.db');
  const copied = async (): Promise<void> => {
    for (const end of ['', '-wal', '-shm']) await rm(`${copy}${end}`, { force: true });
    await copyFile(file, copy);
    await copyFile(`${file}-wal`, `${copy}-wal`).catch(() => undefined);
  };
  return {
    section: { database: file },
    async look(at) {
      await copied();
      const database = openSqlite(copy);
      try {
        return await at(database);
      } finally {
        await database.close();
      }
    },
    async integrity() {
      const database = new Sqlite(file, { readonly: true });
      try {
        return String(database.pragma('integrity_check', { simple: true }));
      } finally {
        database.close();
      }
    },
  };
}

/** By kit: the numbers that the service has acknowledged. */
type Acknowledged = Map<string, Set<number>>;

function noteDelivery(acknowledged: Acknowledged, { topic, payload }: Delivery): void {
  const place = parseUp(topic);
  if (!place || place.channel === channels.state) return;
  const ofKit = acknowledged.get(place.kit_id) ?? new Set<number>();
  acknowledged.set(place.kit_id, ofKit);
  const items =
    place.channel === channels.batch
      ? unpackBatch(payload)
      : [JSON.parse(payload.toString()) as { readonly seq: number }];
  for (const { seq } of items) ofKit.add(seq);
}

interface Looked {
  readonly database: Database;
  readonly kits: readonly PublishingKit[];
  readonly acknowledged: Acknowledged;
}

async function countMissing(
  { database, kits, acknowledged }: Looked,
  missing: { acknowledged: number; named: number },
): Promise<void> {
  for (const { kit_id, named } of kits) {
    // Taken before the database is read: what is acknowledged meanwhile may be stored meanwhile.
    const [puback, ack] = [[...(acknowledged.get(kit_id) ?? [])], [...named]];
    const stored = await storedOf(database, kit_id);
    missing.acknowledged += puback.filter((seq) => !stored.has(seq)).length;
    missing.named += ack.filter((seq) => !stored.has(seq)).length;
  }
}

async function storedOf(database: Database, kit_id: string): Promise<ReadonlySet<number>> {
  const stored = new Set<number>();
  const acks = await readStored(database, kit_id);
  for (const [first, last] of acks.filter((ack) => ack.epoch === epoch).flatMap(({ ranges }) => ranges)) {
    for (let seq = first; seq <= last; seq += 1) stored.add(seq);
  }
  return stored;
}

async function lostOf(database: Database, kits: readonly PublishingKit[]): Promise<number> {
  let lost = 0;
  for (const { kit_id, published } of kits) {
    const stored = await storedOf(database, kit_id);
    for (const seq of published) if (!stored.has(seq)) lost += 1;
  }
  return lost;
}

async function duplicatesOf(database: Database, kits: readonly PublishingKit[]): Promise<number> {
  const store = sqlStore(database);
  let duplicates = 0;
  for (const { kit_id } of kits) duplicates += (await store.kit(kit_id))?.counts.duplicates ?? 0;
  return duplicates;
}

/** What became of the alarms, compared with what the kits sent. */
async function alarmsOf(database: Database, kits: readonly PublishingKit[]) {
  const account = { alarms: 0, alarms_lost: 0, alarms_doubled: 0, alarms_wrong: 0 };
  for (const { kit_id, alarms } of kits) {
    const rows = await database.all(
      'SELECT subject, count, closed_ms FROM alarms WHERE kit_id = ? AND what = ?',
      kit_id,
      alarm_feed,
    );
    const bySubject = Map.groupBy(rows, ({ subject }) => String(subject));
    for (const [name, state] of alarms) {
      const [row, ...others] = bySubject.get(name) ?? [];
      account.alarms += 1;
      if (!row) account.alarms_lost += 1;
      else if (others.length > 0 || Number(row['count']) !== 1) account.alarms_doubled += 1;
      else if ((row['closed_ms'] !== null) !== (state === 'ended')) account.alarms_wrong += 1;
    }
  }
  return account;
}

/** A number that counts as stored stands for a content that is there too. */
async function staleOf(database: Database, kits: readonly PublishingKit[]): Promise<readonly string[]> {
  const stale: string[] = [];
  for (const { kit_id, newest } of kits) {
    const feeds = await database.all('SELECT asset_id, feed, seq FROM feeds WHERE kit_id = ?', kit_id);
    const tasks = await database.all('SELECT task_id, revision FROM tasks WHERE kit_id = ?', kit_id);
    const parts = await database.all('SELECT seq FROM kit_parts WHERE kit_id = ?', kit_id);
    const found = new Set([
      ...feeds.flatMap(({ asset_id, feed, seq }) =>
        [channels.feed, channels.event].map((of) => `${of(String(asset_id), String(feed))} ${Number(seq)}`),
      ),
      ...tasks.map(({ task_id, revision }) => `${channels.task(String(task_id))} ${Number(revision)}`),
      ...parts.map(({ seq }) => `${channels.telemetry} ${Number(seq)}`),
    ]);
    for (const { channel, seq } of newest.values()) if (!found.has(`${channel} ${seq}`)) stale.push(channel);
  }
  return stale;
}
