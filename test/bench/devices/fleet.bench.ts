/** A thousand kits, and ten thousand, against one mosquitto and one service that keeps the history: how fast it stores, how late a WebSocket hears, what a kit costs; and two replicas. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Client } from 'pg';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { sleep } from '../../../src/platform/time.ts';
import { type Broker, startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { findProgram } from '../../support/peers.ts';
import {
  clientOf,
  type Postgres,
  postgres_password,
  startPostgres,
} from '../../support/database/postgres.ts';
import { processorSeconds, residentMb } from '../../support/process-stats.ts';
import { type Bench, type BenchContext, type Figure, median } from '../figure.ts';
import { type Fleet, startFleet } from '../support/fleet-kits.ts';
import { node_flags } from '../support/subject.ts';
import { freePort } from '../../support/ports.ts';

const kits = 1_000;
/** The size that one PostgreSQL has to carry; each sends fewer messages at once. */
const large: Size = { kits: 10_000, of_each: 5 };
/** They come first, so that what the program needs for itself is not counted as the kits'. */
const early_kits = 50;
const early_of_each = 300;
const watched_kits = 32;
const sockets_of_key = 16;
const stored_within_ms = 120_000;
const settle_ms = 2_000;
/** Of what was sent; less came because the newest value took the place of those before it. */
const heard_share_min = 0.95;
/** A position every five seconds of each asset. */
const steady_per_s = 1_000;

interface Size {
  readonly kits: number;
  /** Messages of each kit in a burst. */
  readonly of_each: number;
}

interface Side {
  readonly name: string;
  readonly replicas: number;
  /** File of SQLite, or address of PostgreSQL. */
  readonly database: string;
  readonly size: Size;
}

interface Measured {
  readonly ingest_per_s: number;
  /** Null: it cannot keep this pace here. */
  readonly p99_ms: number | null;
  readonly kb_per_kit: number;
  /** Processor time of the service, or of all its replicas, for a message. */
  readonly cpu_us: number;
}

async function run(context: BenchContext): Promise<readonly Figure[]> {
  const { dir, say } = context;
  const lite = await measure(
    { name: 'SQLite', replicas: 1, database: join(dir, 'service.db'), size: usual(context) },
    context,
  );
  const shared = await onPostgres(context);
  if (!shared) say('PostgreSQL is not installed: replicas are not measured');
  const delay = `ms at ${steady_per_s}/s`;
  return [
    figure('ingest_per_s', lite.ingest_per_s, rate, '>= 2000'),
    figure('publish_to_websocket_p99_ms', lite.p99_ms, delay, '<= 100'),
    figure('kb_per_kit', lite.kb_per_kit, 'kB of memory', '<= 128'),
    figure('cpu_us_per_message', lite.cpu_us, 'us of one core', '<= 200'),
    {
      ...figure('postgres_ingest_per_s', shared?.one.ingest_per_s, rate, ''),
      ...than('SQLite', lite.ingest_per_s),
    },
    ...largeFigures(shared),
    {
      ...figure('two_replicas_ingest_per_s', shared?.two.ingest_per_s, rate, ''),
      ...than('one replica', shared?.one.ingest_per_s),
    },
    {
      ...figure('two_replicas_websocket_p99_ms', shared?.two.p99_ms, delay, '<= 250'),
      ...than('one replica', shared?.one.p99_ms),
    },
  ];
}

const rate = 'messages/s';

function figure(name: string, value: number | null | undefined, unit: string, target: string): Figure {
  const skipped = value === undefined ? 'PostgreSQL is not installed' : 'cannot keep this pace here';
  const plain = { figure: name, unit, target };
  return typeof value === 'number' ? { ...plain, value } : { ...plain, value: null, skipped };
}

function than(against: string, against_value: number | null | undefined) {
  return { against, against_value: against_value ?? null };
}

/** Ten times as many kits, with one replica and with two. */
function largeFigures(shared: Awaited<ReturnType<typeof onPostgres>>): readonly Figure[] {
  return [
    {
      ...figure('postgres_10000_kits_ingest_per_s', shared?.many.ingest_per_s, rate, '>= 10000'),
      ...than('1,000 kits', shared?.one.ingest_per_s),
    },
    {
      ...figure('postgres_10000_kits_cpu_us', shared?.many.cpu_us, 'us of one core', ''),
      ...than('1,000 kits', shared?.one.cpu_us),
    },
    {
      ...figure('postgres_10000_kits_two_replicas_per_s', shared?.many_two.ingest_per_s, rate, '>= 10000'),
      ...than('one replica', shared?.many.ingest_per_s),
    },
  ];
}

async function onPostgres(context: BenchContext) {
  if (findProgram('postgres') === undefined) return undefined;
  const server: Postgres = await startPostgres({ durable: true });
  try {
    const [first, second] = [await server.newDatabase('one'), await server.newDatabase('two')];
    const [third, fourth] = [await server.newDatabase('large'), await server.newDatabase('large_two')];
    const one = await measure(
      { name: 'one replica', replicas: 1, database: first, size: usual(context) },
      context,
    );
    const two = await measure(
      { name: 'two replicas', replicas: 2, database: second, size: usual(context) },
      context,
    );
    const many = await measure({ name: '10,000 kits', replicas: 1, database: third, size: large }, context);
    const many_two = await measure(
      { name: '10,000 kits, two replicas', replicas: 2, database: fourth, size: large },
      context,
    );
    return { one, two, many, many_two };
  } finally {
    await server.stop();
  }
}

const usual = ({ long }: BenchContext): Size => ({ kits, of_each: long ? 40 : 20 });

async function measure(side: Side, { dir, long, say, calm }: BenchContext): Promise<Measured> {
  await calm();
  const conf = [...unthrottled, 'max_connections -1'];
  const broker = await startMosquitto({ conf });
  const { kits: count, of_each } = side.size;
  const [early, fleet] = [startFleet(early_kits), startFleet(count)];
  const services: Service[] = [];
  try {
    for (let n = 0; n < side.replicas; n += 1) services.push(await startService(side, broker, dir));
    const [service] = services;
    if (!service) throw new Error('no service');
    await early.order({ kind: 'connect', port: broker.port, kit_ids: early.kit_ids });
    const warm = (await early.order({ kind: 'burst', of_each: early_of_each })) - early_kits;
    await stored(side, warm);
    const before_mb = await residentMb(service.child.pid);
    const introduced = await fleet.order({ kind: 'connect', port: broker.port, kit_ids: fleet.kit_ids });
    // Presence is not counted.
    await stored(side, warm + introduced - count);
    await sleep(settle_ms, new AbortController().signal);
    const kb_per_kit = (((await residentMb(service.child.pid)) - before_mb) * 1_024) / count;
    const rates: number[] = [];
    const cpu_before_s = await processorsOf(services);
    for (let round = 1; round <= (long ? 5 : 3); round += 1) {
      rates.push(await burst(side, fleet, of_each));
    }
    const cpu_s = (await processorsOf(services)) - cpu_before_s;
    const cpu_us = (cpu_s * 1e6) / (rates.length * of_each * count);
    const ingest_per_s = median(rates);
    const p99_ms = await steady(services, fleet, { seconds: long ? 60 : 15 });
    const late = p99_ms === null ? 'too slow for the steady pace' : `p99 ${p99_ms} ms`;
    say(
      `${side.name}: ${Math.round(ingest_per_s)} messages/s, ${late}, ${kb_per_kit.toFixed(1)} kB a kit, ${Math.round(cpu_us)} us of processor a message`,
    );
    return { ingest_per_s, p99_ms, kb_per_kit, cpu_us };
  } finally {
    early.stop();
    fleet.stop();
    for (const { child } of services) await child.end('SIGKILL');
    await broker.stop();
  }
}

interface Service {
  readonly child: Child;
  readonly url: string;
  readonly config: string;
}

async function startService({ replicas, database }: Side, broker: Broker, dir: string): Promise<Service> {
  const port = await freePort();
  const config = join(dir, `service-${port}.yaml`);
  const isShared = database.startsWith('postgres:');
  const share = isShared && replicas > 1 ? { share: 'bench' } : {};
  const secret = join(dir, 'postgres-password');
  if (isShared) await writeFile(secret, postgres_password, { mode: 0o600 });
  const password = isShared ? { database_password_file: secret } : {};
  const listen = `127.0.0.1:${port}`;
  await writeFile(
    config,
    JSON.stringify({ broker: { url: broker.url }, database, listen, ...share, ...password }),
  );
  const child = startChild([...node_flags, command_file, 'service', '--config', config]);
  await child.printed(/service connected to the broker/u);
  return { child, url: `ws://${listen}`, config };
}

/** Messages that the database has counted. */
async function countOf({ database }: Side): Promise<number> {
  const sql = 'SELECT SUM(received) AS received FROM kits';
  if (!database.startsWith('postgres:')) {
    const file = new Sqlite(database, { readonly: true });
    try {
      return received.parse(file.prepare(sql).get()).received;
    } finally {
      file.close();
    }
  }
  const client = new Client(clientOf(database));
  await client.connect();
  try {
    return received.parse((await client.query(sql)).rows[0]).received;
  } finally {
    await client.end();
  }
}
const received = z.object({ received: z.coerce.number() });

async function processorsOf(services: readonly Service[]): Promise<number> {
  const each = await Promise.all(services.map(async ({ child }) => processorSeconds(child.pid)));
  return each.reduce((sum, seconds) => sum + seconds, 0);
}

async function stored(side: Side, count: number): Promise<void> {
  await eventually('everything is stored', async () => (await countOf(side)) >= count, stored_within_ms);
}

/** Everything at once: how many a second are in the database. */
async function burst(side: Side, fleet: Fleet, of_each: number): Promise<number> {
  const before = await countOf(side);
  const start_ms = performance.now();
  const sent = fleet.order({ kind: 'burst', of_each });
  const size = fleet.kit_ids.length;
  await stored(side, before + of_each * size);
  await sent;
  return (of_each * size) / ((performance.now() - start_ms) / 1_000);
}

/** At a steady rate: the 99th percentile of the time from the kit to a WebSocket, over all replicas. */
async function steady(services: readonly Service[], fleet: Fleet, { seconds }: { readonly seconds: number }) {
  const delays: number[] = [];
  const sockets: WebSocket[] = [];
  for (let at = 0; at < watched_kits; at += sockets_of_key) {
    const key = await newKey(services[0]?.config ?? '');
    const some = fleet.kit_ids.slice(at, at + sockets_of_key);
    for (const [n, kit_id] of some.entries()) {
      const service = services[n % services.length];
      if (service) sockets.push(await watch(`${service.url}/api/kits/${kit_id}/ws`, key, delays));
    }
  }
  await fleet.order({ kind: 'pace', per_s: steady_per_s, seconds });
  await sleep(1_000, new AbortController().signal);
  for (const socket of sockets) socket.terminate();
  const expected = (steady_per_s * seconds * watched_kits) / fleet.kit_ids.length;
  if (delays.length < expected * heard_share_min) return null;
  return delays.sort((a, b) => a - b)[Math.floor(delays.length * 0.99)] ?? null;
}

async function newKey(config: string): Promise<string> {
  const { ended } = startChild([
    command_file,
    'service',
    'key',
    'add',
    'bench',
    '--all-kits',
    '--config',
    config,
  ]);
  const { stdout, stderr } = await ended;
  if (stdout === '') throw new Error(stderr);
  return stdout.trim();
}

const feedFrame = z.looseObject({
  type: z.string(),
  message: z.looseObject({ data: z.looseObject({ sent_ms: z.number() }) }).optional(),
});

/** Resolves when the snapshot has come. */
async function watch(url: string, key: string, delays: number[]): Promise<WebSocket> {
  const socket = new WebSocket(url, ['kit.v1'], { headers: { 'x-api-key': key } });
  const ready = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.on('open', () => socket.send('{"type":"subscribe","assets":"*"}'));
    socket.on('message', (raw: Buffer) => {
      const now_ms = Date.now();
      const frame = feedFrame.safeParse(JSON.parse(raw.toString('utf8'))).data;
      if (frame?.type === 'snapshot') resolve();
      if (frame?.type === 'feed' && frame.message) delays.push(now_ms - frame.message.data.sent_ms);
    });
  });
  await ready;
  return socket;
}

export const bench: Bench = { name: 'fleet', run };
