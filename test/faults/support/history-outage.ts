/**
 * Six hours without a link, then the drain, through the daemon, mosquitto and the standalone service; and the account: what the
 * history answers against what the kit had accepted. The six hours pass in seconds: the buffer is filled by the outbox of the
 * daemon with a clock that runs ahead, and the daemon drains it.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sleep } from '../../../src/platform/time.ts';
import { dropReport } from '../../../src/contract/drops.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import { channels } from '../../../src/contract/topics.ts';
import { openOutbox } from '../../../src/kit/outbox/live/outbox.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { type Broker, startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { flight, test_drones } from '../../support/gps.ts';
import { command_file, type Kit, withKit } from '../../support/kit/kit.ts';
import { roomy_limits } from '../../support/kit/connector.ts';
import { type Postgres, startPostgres } from '../../support/database/postgres.ts';
import { freePort } from '../../support/ports.ts';
import { firstNumber } from '../../support/witness.ts';

const never = new AbortController().signal;

export interface OutageSpec {
  readonly database: 'SQLite' | 'PostgreSQL';
  /** Of service and database in turn while the buffer is drained. */
  readonly kills: number;
  /** Of the broker too, which keeps nothing on disk: what it acknowledged and the service does not have within a second is lost. */
  readonly killsBroker: boolean;
  /** How often the service is away while the broker takes the backlog, and the broker then ends with nothing on disk. */
  readonly losses?: number;
  /** Positions a second of each of the two drones. */
  readonly hz: number;
  /** Of the backlog, so that the drain lasts as long as the kills. 0: no limit. */
  readonly backlog_kbps: number;
}

export interface OutageAccount {
  /** By the outbox, within the six hours. */
  readonly accepted: number;
  readonly dropped: number;
  /** Accepted, not dropped, not answered; by lane. */
  readonly missing: Readonly<Partial<Record<Lane, number>>>;
  /** Numbers that no drop report explains, of any epoch. */
  readonly unexplained: number;
  /** Answered twice. */
  readonly doubled: number;
  /** Answered with other content or another time. */
  readonly changed: number;
  /** Answered after a message that was observed later. */
  readonly out_of_order: number;
  readonly answered: number;
  readonly events: number;
  readonly kills: number;
  readonly seconds: number;
}

const outage_ms = 6 * 3_600_000;
/** The buffer takes this part of what is accepted: the rest is dropped, and named. */
const kept_share = 0.9;
const commit_every = 500;
const telemetry_every_s = 10;
const event_every_s = 60;
const drain_ms = 600_000;
/** Several batches of the backlog. */
const away_ms = 4_000;
const left_max = 30;
/** More than leaves the buffer between the first message and the first acknowledgement of the service. */
const under_way_rows = 1_000;
const drops_ms = 60_000;
const page = 5_000;
const starts_max = 5;
/** Many kills make the machine busy. */
const start_ms = 120_000;

interface Accepted {
  readonly lane: Lane;
  readonly channel: string;
  readonly time_ms: number;
  readonly text: string;
}
/** By epoch and number. */
type Ledger = Map<string, Accepted>;

export async function playOutage(spec: OutageSpec): Promise<OutageAccount> {
  const begin_ms = performance.now();
  let account: OutageAccount | undefined;
  await withKit({ rehearsed: false }, async (kit) => {
    const broker = await startMosquitto({ conf: unthrottled });
    const server = spec.database === 'PostgreSQL' ? await startPostgres({ durable: true }) : undefined;
    try {
      const cloud = await openCloud(kit, broker, server);
      const { ledger, rows_max } = await beOffline(kit, spec.hz);
      await kit.configure({
        broker: { url: broker.url },
        uplink: { backlog_kbps: { default: spec.backlog_kbps } },
        outbox: { rows_max },
        drivers: [kit.gateway],
      });
      const daemon = await kit.start();
      const kills = await killDuring(spec, { kit, broker, server, cloud });
      await eventually('the buffer is drained', async () => (await bufferedOf(kit)) < left_max, drain_ms);
      // Drops are reported every ten seconds.
      const dropped = sum(Object.values((await kit.status()).outbox.dropped));
      await eventually(
        'all drops are reported',
        async () => reportedOf(await readAll(cloud, kit.kit_id, 'class=kit')) >= dropped,
        drops_ms,
      );
      await daemon.end('SIGTERM');
      const answered = await settled(cloud, kit.kit_id);
      account = { ...accountOf(ledger, answered), kills, seconds: (performance.now() - begin_ms) / 1_000 };
      await cloud.service().end('SIGTERM');
    } finally {
      await broker.stop();
      await server?.stop();
    }
  });
  if (!account) throw new Error('there is no account');
  return account;
}

/** Accepts six hours of two drones and the gateway, and returns what was accepted. */
async function beOffline(
  kit: Kit,
  hz: number,
): Promise<{ readonly ledger: Ledger; readonly rows_max: number }> {
  const state_dir = join(kit.dir, 'state');
  await mkdir(state_dir, { recursive: true });
  const start_ms = Date.now() - outage_ms - 60_000;
  const virtual = { ms: 0 };
  const clock: Clock = {
    boot_id: 'six hours',
    stamp: () => ({ time_ms: start_ms + virtual.ms, mono_ms: virtual.ms, synced: true }),
  };
  const steps = (outage_ms / 1_000) * hz;
  const rows_max = Math.floor(2 * steps * kept_share);
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const file = join(state_dir, 'buffer.db');
  const outbox = await openOutbox({ file, clock, log: quiet, limits: { ...roomy_limits, rows_max } });
  const ledger: Ledger = new Map();
  const accept = (lane: Lane, channel: string, data: JsonObject): void => {
    const { epoch, seq } = outbox.append({ lane, channel, data });
    const { time_ms } = clock.stamp();
    ledger.set(`${epoch}/${seq}`, { lane, channel, time_ms, text: JSON.stringify(data) });
  };
  const [first, second] = test_drones;
  const positions = [flight(), flight()] as const;
  for (let step = 0; step < steps; step += 1) {
    virtual.ms = Math.round((step * 1_000) / hz);
    accept('feed', channels.feed(first, 'gps'), positions[0].next().value);
    accept('feed', channels.feed(second, 'gps'), positions[1].next().value);
    if (step % (telemetry_every_s * hz) === 0)
      accept('kit', channels.telemetry, { battery: step % 101, battery_charging: false });
    if (step % (event_every_s * hz) === 0)
      accept('alarm', channels.event(first, 'motion'), { active: step % 2 === 0, step });
    if (step % commit_every === 0) await outbox.committed();
  }
  await outbox.committed();
  await outbox.close();
  return { ledger, rows_max };
}

interface Cloud {
  readonly service: () => Child;
  restart(): Promise<void>;
  ask(path: string): Promise<unknown>;
}

async function openCloud(kit: Kit, broker: Broker, server: Postgres | undefined): Promise<Cloud> {
  const database = server ? await server.newDatabase('kits') : join(kit.dir, 'service.db');
  const database_password_file = join(kit.dir, 'postgres-password');
  if (server) await writeFile(database_password_file, `${server.password}\n`, { mode: 0o600 });
  const listen = `127.0.0.1:${await freePort()}`;
  const config = join(kit.dir, 'service.yaml');
  const section = {
    broker: { url: broker.url },
    database,
    listen,
    ...(server && { database_password_file }),
  };
  await writeFile(config, JSON.stringify(section));
  // Without its database the service exits, and systemd starts it again.
  const start = async (attempts = starts_max): Promise<Child> => {
    const child = startChild([command_file, 'service', '--config', config]);
    const connected = child.printed(/service connected to the broker/u, start_ms);
    try {
      await connected;
      return child;
    } catch (error) {
      await child.end('SIGKILL');
      if (attempts <= 1) throw error;
      return start(attempts - 1);
    }
  };
  let service = await start();
  const words = ['service', 'key', 'add', 'test', '--all-kits', '--config', config];
  const { stdout, stderr } = await startChild([command_file, ...words]).ended;
  const key = stdout.trim();
  if (key === '') throw new Error(stderr);
  return {
    service: () => service,
    async restart() {
      await service.end('SIGKILL');
      service = await start();
    },
    async ask(path) {
      const response = await fetch(`http://${listen}${path}`, { headers: { 'x-api-key': key } });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      const body: unknown = await response.json();
      return body;
    },
  };
}

interface Killed {
  readonly kit: Kit;
  readonly broker: Broker;
  readonly server: Postgres | undefined;
  readonly cloud: Cloud;
}

async function killDuring(spec: OutageSpec, { kit, broker, server, cloud }: Killed): Promise<number> {
  const killService = async (): Promise<void> => cloud.restart();
  const killDatabase = async (): Promise<void> => {
    await server?.kill();
    await sleep(Math.random() * 300, never);
    await server?.start();
  };
  const killBroker = async (): Promise<void> => {
    await broker.kill('SIGKILL');
    await sleep(Math.random() * 300, never);
    await broker.start();
  };
  const loseBoth = async (): Promise<void> => {
    await cloud.service().end('SIGKILL');
    await sleep(away_ms, never);
    await broker.kill('SIGKILL');
    await broker.start();
    await cloud.restart();
  };
  // Until the service has acknowledged once, what the broker acknowledges and loses is gone, as the contract says.
  await eventually(
    'the kit waits for the service',
    async () => (await kit.status()).outbox.delivered_to === 'cloud',
  );
  for (let lost = 0; lost < (spec.losses ?? 0); lost += 1) {
    const before = await bufferedOf(kit);
    await eventually('the service has stored more than was under way then', async () => {
      return (await bufferedOf(kit)) < before - under_way_rows;
    });
    await loseBoth();
  }
  const all = [killService, ...(server ? [killDatabase] : []), ...(spec.killsBroker ? [killBroker] : [])];
  let kills = 0;
  for (; kills < spec.kills; kills += 1) {
    await sleep(Math.random() * 1_000, never);
    if ((await bufferedOf(kit)) < left_max) break;
    await all[kills % all.length]?.();
  }
  return kills;
}

async function bufferedOf(kit: Kit): Promise<number> {
  return (await kit.status()).outbox.buffered;
}

const historyPage = z.object({
  messages: z.array(
    z.object({
      time: z.string(),
      channel: z.string(),
      epoch: z.number(),
      seq: z.number(),
      data: z.unknown(),
    }),
  ),
  next: z.string().nullable(),
});
type Answered = z.output<typeof historyPage>['messages'];

/** Everything in the history, once nothing is added any more. */
async function settled(cloud: Cloud, kit_id: string): Promise<Answered> {
  let before = -1;
  let answered: Answered = [];
  await eventually(
    'the history does not grow',
    async () => {
      answered = await readAll(cloud, kit_id);
      const isSame = answered.length === before;
      before = answered.length;
      if (!isSame) await sleep(1_500, never);
      return isSame;
    },
    drain_ms,
  );
  return answered;
}

async function readAll(cloud: Cloud, kit_id: string, filter = ''): Promise<Answered> {
  const answered: Answered = [];
  const query = `from=${Date.now() - 2 * outage_ms}&order=asc&limit=${page}&${filter}`;
  for (let cursor: string | null = ''; cursor !== null;) {
    const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const { messages, next }: z.output<typeof historyPage> = historyPage.parse(
      await cloud.ask(`/api/kits/${kit_id}/history?${query}${more}`),
    );
    answered.push(...messages);
    cursor = next;
  }
  return answered;
}

function accountOf(ledger: Ledger, all: Answered): Omit<OutageAccount, 'kills' | 'seconds'> {
  // Presence has numbers of its own.
  const answered = all.filter(({ channel }) => channel !== channels.state);
  const seen = new Set<string>();
  let [doubled, changed, out_of_order, events, last_ms] = [0, 0, 0, 0, 0];
  for (const { time, channel, epoch, seq, data } of answered) {
    const name = `${epoch}/${seq}`;
    if (seen.has(name)) doubled += 1;
    seen.add(name);
    const time_ms = Date.parse(time);
    if (time_ms < last_ms) out_of_order += 1;
    last_ms = time_ms;
    const accepted = ledger.get(name);
    if (!accepted) continue;
    if (channel.startsWith('event/')) events += 1;
    const isSame =
      accepted.channel === channel && accepted.time_ms === time_ms && accepted.text === JSON.stringify(data);
    if (!isSame) changed += 1;
  }
  const counts = { answered: answered.length, doubled, changed, out_of_order, events };
  return { accepted: ledger.size, ...counts, ...missingOf(ledger, seen, answered) };
}

/** What was accepted and is not among `seen`. */
function missingOf(ledger: Ledger, seen: ReadonlySet<string>, answered: Answered) {
  const { explained, unexplained } = holesOf(answered);
  const missing: Partial<Record<Lane, number>> = {};
  let dropped = 0;
  for (const [name, { lane }] of ledger) {
    if (seen.has(name)) continue;
    if (explained.has(name)) dropped += 1;
    else missing[lane] = (missing[lane] ?? 0) + 1;
  }
  return { dropped, missing, unexplained };
}

function dropsOf(answered: Answered) {
  return answered
    .filter(({ channel }) => channel === channels.drops)
    .flatMap(({ data }) => dropReport.parse(data).drops);
}

/** How many messages the drop reports name. */
function reportedOf(answered: Answered): number {
  return sum(dropsOf(answered).map(({ rows }) => rows));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}

/**
 * Numbers between the first and the highest of their epoch that were not answered. A report names ranges and how many of them were dropped:
 * where fewer are missing than that, or more, the difference is not explained.
 */
function holesOf(answered: Answered) {
  const drops = dropsOf(answered);
  const explained = new Set<string>();
  let unexplained = 0;
  for (const [epoch, ofEpoch] of Map.groupBy(answered, (each) => each.epoch)) {
    const seqs = new Set(ofEpoch.map(({ seq }) => seq));
    const ofDrops = drops.filter((each) => each.epoch === epoch);
    const highest = ofEpoch.reduce((most, { seq }) => Math.max(most, seq), 0);
    let missing = 0;
    for (let seq = firstNumber(seqs); seq <= highest; seq += 1) {
      if (seqs.has(seq)) continue;
      missing += 1;
      if (ofDrops.some(({ lo, hi }) => lo <= seq && seq <= hi)) explained.add(`${epoch}/${seq}`);
    }
    const named = ofDrops.filter(({ lo }) => lo <= highest).reduce((sum, { rows }) => sum + rows, 0);
    unexplained += Math.max(0, missing - named);
  }
  return { explained, unexplained };
}
