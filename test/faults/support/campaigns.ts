/** Kill after kill at random moments, and the account at the end: what was accepted, what arrived, what is on disk. */
import Database from 'better-sqlite3';
import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { sleep } from '../../../src/platform/time.ts';
import { startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { test_kit } from '../../support/gps.ts';
import { withExt4 } from '../../support/disk/disks.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { startSubscriber, type Subscriber } from '../../support/brokers/subscriber.ts';
import { run, withDirectory } from '../../support/temporary.ts';
import { monotonic_us } from '../../support/witness.ts';
import {
  lostOf,
  prepareProducer,
  readRecord,
  startProducer,
  type Lost,
  type ProducerSpec,
} from './producer.ts';

const never = new AbortController().signal;

export interface Account {
  readonly sync: Lost;
  readonly lazy: Lost;
  /** Messages that came more than once. */
  readonly duplicates: number;
  /** As many as could be under way or not yet deleted at the kills. */
  readonly duplicates_max: number;
  /** The longest time before its kill that a lost lazy message was accepted. */
  readonly lazy_window_s: number;
  /** The longest that this process waited for a processor meanwhile, so that a busy machine is not taken for a slow connector. */
  readonly starved_s: number;
  readonly starts: number;
  /** Files beside the buffer, its log and its reserve of disk space: a damaged one that was moved aside would be one. */
  readonly foreign_files: readonly string[];
  readonly integrity: unknown;
  readonly faults: readonly string[];
  readonly emptied: boolean;
  readonly seconds: number;
}

/** From the kill or the cut until the process was gone, microseconds of the monotonic clock. */
interface Outage {
  readonly what: 'kill' | 'power';
  readonly from_us: number;
  readonly to_us: number;
}

/** Most runs are short, which costs little; some are longer than the second after which telemetry is written. */
const run_min_ms = 50;
const run_max_ms = 1_500;
const drain_ms = 60_000;
const disk_mb = 256;
/** Time between two looks at how late the event loop comes. */
const turn_ms = 10;
/** What may be lost of telemetry at a power cut: 1 s until it is written while online, and a commit. */
const lazy_window_ms = 1_250;
/** What the broker acknowledged is deleted with the next commit, or with the one after if one is under way. */
const undeleted_ms = 250;

/** Kills the connector with SIGKILL while it produces and drains at full speed. */
export async function killDaemons(kills: number): Promise<Account> {
  return withDirectory(async (dir) => {
    const begin_ms = performance.now();
    const broker = await startMosquitto({ conf: unthrottled });
    const subscriber = await startSubscriber(broker.port);
    const spec = await specOf(dir, dir, broker.url);
    const outages: Outage[] = [];
    let duplicates_max = 0;
    const turns = monitorEventLoopDelay({ resolution: turn_ms });
    let next = prepareProducer(spec);
    for (let kill = 0; kill < kills; kill++) {
      const producer = next.start();
      await producer.opened();
      next = prepareProducer(spec);
      turns.enable();
      const run_ms = run_min_ms + Math.random() ** 2 * (run_max_ms - run_min_ms);
      await sleep(Math.max(0, run_ms - undeleted_ms), never);
      const { messages: deleted } = await subscriber.report();
      await sleep(Math.min(run_ms, undeleted_ms), never);
      turns.disable();
      const from_us = monotonic_us();
      await producer.kill('SIGKILL');
      outages.push({ what: 'kill', from_us, to_us: monotonic_us() });
      duplicates_max += (await subscriber.report()).messages - deleted;
    }
    await next.discard();
    const account = await settle(spec, subscriber, outages);
    await subscriber.stop();
    await broker.stop();
    const starved_s = starvedOf(turns);
    return { ...account, duplicates_max, starved_s, seconds: secondsSince(begin_ms) };
  });
}

/** Kills a broker that keeps nothing on disk, under a connector that goes on; the cloud confirms what it has stored. */
export async function killBrokers(kills: number): Promise<Account> {
  return withDirectory(async (dir) => {
    const begin_ms = performance.now();
    const broker = await startMosquitto({ conf: unthrottled });
    const subscriber = await startSubscriber(broker.port, {
      cloud_of: test_kit,
      client_id: 'cloud',
      clean: false,
    });
    const spec = { ...(await specOf(dir, dir, broker.url)), ack: 'auto', pause_ms: 5 } as const;
    const producer = startProducer(spec);
    await subscriber.until(({ unique }) => unique > 1_000, drain_ms);
    for (let kill = 0; kill < kills; kill++) {
      await sleep(200 + Math.random() * 600, never);
      await broker.kill('SIGKILL');
      await sleep(Math.random() * 400, never);
      await broker.start();
    }
    const before = (await subscriber.report()).unique;
    await subscriber.until(({ unique }) => unique > before + 1_000, drain_ms);
    await producer.kill('SIGTERM');
    const account = await settle(spec, subscriber, []);
    await subscriber.stop();
    await broker.stop();
    return { ...account, seconds: secondsSince(begin_ms) };
  });
}

/** What the broker does at a power cut. `silent`: it acknowledges nothing any more, which was not noticed yet. */
export type BrokerAtCut = 'away' | 'there' | 'silent';

/** Cuts the power of the disk again and again while messages are accepted. */
export async function cutPower(cuts: number, where: BrokerAtCut): Promise<Account> {
  return withDirectory(async (dir) =>
    withExt4(disk_mb, async (mounted, disk) => {
      const begin_ms = performance.now();
      const broker = await startMosquitto({ conf: unthrottled });
      const proxy = await startProxy(broker.port);
      const subscriber = await startSubscriber(broker.port);
      const url = `mqtt://127.0.0.1:${proxy.port}`;
      // About 1,000 a second. A sync message takes the telemetry before it along to the disk: with one at each turn
      // the window of telemetry would look smaller than it is.
      const pace = { pause_ms: 20, ahead_max: 1_000_000, sync_every: 40 };
      const spec = { ...(await specOf(dir, mounted, url)), ...pace };
      // The folder is of the installation and survives; else a cut before the first commit would take it away.
      await run('sync', '--file-system', mounted);
      const outages: Outage[] = [];
      if (where === 'away') proxy.setAdmission('refuse');
      const turns = monitorEventLoopDelay({ resolution: turn_ms });
      let next = prepareProducer(spec);
      for (let cut = 0; cut < cuts; cut++) {
        const producer = next.start();
        await producer.opened();
        next = prepareProducer(spec);
        turns.enable();
        await sleep(Math.random() ** 2 * run_max_ms, never);
        if (where === 'silent') proxy.stall();
        await sleep(lazy_window_ms * 1.2, never);
        turns.disable();
        const from_us = monotonic_us();
        disk.shutdown();
        await producer.kill('SIGKILL');
        outages.push({ what: 'power', from_us, to_us: monotonic_us() });
        disk.remount();
        proxy.cut();
      }
      await next.discard();
      proxy.setAdmission('pass');
      const account = await settle(spec, subscriber, outages);
      await subscriber.stop();
      await proxy.close();
      await broker.stop();
      const starved_s = starvedOf(turns);
      return { ...account, starved_s, seconds: secondsSince(begin_ms) };
    }),
  );
}

/** How long this process waited for a processor at most. */
function starvedOf(turns: ReturnType<typeof monitorEventLoopDelay>): number {
  return Math.max(0, turns.max / 1e6 - turn_ms) / 1e3;
}

/** Full speed; `disk` holds the buffer, and what must survive the disk is noted in `dir`. */
async function specOf(dir: string, disk: string, url: string): Promise<ProducerSpec> {
  const state = join(disk, 'state');
  await mkdir(state, { recursive: true });
  const [file, record] = [join(state, 'buffer.db'), join(dir, 'record')];
  return { file, record, url, ack: 'broker', produce: true, pause_ms: 0, ahead_max: 10_000, sync_every: 2 };
}

/** Lets a last connector deliver what is left, and counts. */
async function settle(
  spec: ProducerSpec,
  subscriber: Subscriber,
  outages: readonly Outage[],
): Promise<Account> {
  const last = startProducer({ ...spec, produce: false });
  const timeout = setTimeout(() => void last.kill('SIGTERM'), drain_ms);
  await last.exited;
  clearTimeout(timeout);
  const record = await readRecord(spec.record);
  const arrived = await subscriber.ranges();
  // With the power off nothing would have been accepted; here the process lives a little longer than its disk.
  const lazy = lostOf(awakeIn(record.lazy, outages), arrived);
  // An fsync that is under way while ext4 shuts down may answer success for what is not there after the mount.
  const cuts = outages.filter(({ what }) => what === 'power');
  const database = new Database(spec.file, { readonly: true });
  const integrity: unknown = database.pragma('integrity_check', { simple: true });
  database.close();
  const files = await readdir(dirname(spec.file));
  return {
    sync: lostOf(awakeIn(record.sync, cuts), arrived),
    lazy,
    duplicates: (await subscriber.report()).duplicates,
    duplicates_max: Number.POSITIVE_INFINITY,
    starved_s: 0,
    lazy_window_s: windowOf(lazy.at_us, outages),
    starts: record.opened.length,
    foreign_files: files.filter((name) => !/^buffer\.db(-wal|-shm|\.reserve|\.epoch)?$/.test(name)),
    integrity,
    faults: record.faults,
    emptied: record.emptied,
    seconds: 0,
  };
}

/** What was accepted outside of the outages. */
function awakeIn<T extends { readonly at_us: number }>(
  runs: readonly T[],
  outages: readonly Outage[],
): readonly T[] {
  return runs.filter(({ at_us }) => !outages.some(({ from_us, to_us }) => at_us > from_us && at_us <= to_us));
}

function secondsSince(begin_ms: number): number {
  return (performance.now() - begin_ms) / 1_000;
}

/** The longest time from the acceptance of a lost message to the outage that came next. */
function windowOf(lost_us: readonly number[], outages: readonly Outage[]): number {
  const windows = lost_us.map(
    (at_us) => (outages.find(({ from_us }) => from_us >= at_us)?.from_us ?? at_us) - at_us,
  );
  return windows.reduce((longest, window_us) => Math.max(longest, window_us), 0) / 1e6;
}
