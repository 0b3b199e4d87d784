/** A kit and a service under attack from every side, watched from outside: are the real devices served, and is memory flat? */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { sleep } from '../../../src/platform/time.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { FakeDrone } from '../../fakes/fake-drone.ts';
import { FakeVendorCamera } from '../../fakes/fake-vendor-camera.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { residentMb } from '../../support/process-stats.ts';
import { seededRandom } from '../../support/random.ts';
import { password as vendor_password, selfSigned } from '../../support/cameras/vendorcam-lab.ts';
import { askTooOften, babbleDown, floodMavlink, pesterHttp, poisonService } from './attackers.ts';
import { freePort } from '../../support/ports.ts';

const sample_every_ms = 15_000;
/** Between two collections the processes do as they like, as in the field. */
const samples_a_collection = 4;
const collector = fileURLToPath(new URL('./collecting-process.ts', import.meta.url));
const loudest_shown = 8;
const onvif_password = 'soak';

const inUseShape = z.strictObject({
  /** The JavaScript heap of the main thread, and those of the others. */
  heap_mb: z.number(),
  threads_mb: z.number(),
  /** What malloc has given out. */
  native_mb: z.number(),
});
export type InUse = z.output<typeof inUseShape>;

/** What was seen at one moment. */
export interface Sample {
  readonly at_s: number;
  /** Resident, with what the kernel could drop. */
  readonly daemon_mb: number;
  readonly service_mb: number;
  /** In use after a collection, once a minute. */
  readonly in_use?: { readonly daemon: InUse; readonly service: InUse };
  /** Undefined: the daemon did not answer in time. */
  readonly state: { readonly balanced: boolean; readonly real_online: number } | undefined;
  /** Longest delay of the daemon's event loop over the last 10 to 20 s. */
  readonly loop_max_ms: number | undefined;
  /** Share of the last 10 s in which something on this machine waited for a processor; undefined: not measured here. */
  readonly cpu_pressure_pct: number | undefined;
  /** Positions of the real drone that the cloud has received so far. */
  readonly positions: number;
  /** Lines that the daemon has logged so far. */
  readonly log_lines: number;
  readonly service_status: number;
}

export interface Soak {
  readonly samples: readonly Sample[];
  /** The sentences that the daemon logged most, with their number. */
  readonly loudest: readonly (readonly [sentence: string, lines: number])[];
  /** The daemon and the service are the processes that were started. */
  readonly survived: { readonly daemon: boolean; readonly service: boolean };
}

/** The real drone, an ONVIF and a vendor camera. */
export const real_devices = 3;

/** Runs all attacks at once for so long. */
export async function soakUnderAttack(minutes: number, seed: number): Promise<Soak> {
  let soak: Soak | undefined;
  await withKit({ rehearsed: false }, async (kit) => {
    const broker = await startMosquitto({ conf: ['max_queued_messages 100000'] });
    const over = new AbortController();
    try {
      soak = await play({ kit, broker, minutes, seed }, over.signal);
    } finally {
      over.abort();
      await broker.stop();
    }
  });
  if (!soak) throw new Error('the soak did not run');
  return soak;
}

interface Scene {
  readonly kit: Kit;
  readonly broker: Broker;
  readonly minutes: number;
  readonly seed: number;
}

async function play({ kit, broker, minutes, seed }: Scene, signal: AbortSignal): Promise<Soak> {
  const [mavlink_port, kit_port, service_port] = [await freePort(), await freePort(), await freePort()];
  const metrics_port = await freePort();
  const cameras = await realCameras(kit, signal);
  const drone = new FakeDrone({ port: mavlink_port });
  await drone.start();
  signal.addEventListener('abort', () => drone.stop(), { once: true });
  await kit.configure({
    broker: { url: broker.url },
    service: { listen: `127.0.0.1:${kit_port}` },
    metrics: { listen: `127.0.0.1:${metrics_port}` },
    drivers: [
      kit.gateway,
      {
        driver: 'mavlink',
        options: { links: [{ kind: 'udp_listen', host: '127.0.0.1', port: mavlink_port }] },
      },
      ...cameras,
    ],
  });
  const cloud = await kit.listen(broker.url);
  // Without the unit's limits the heap grows as it likes.
  Object.assign(process.env, await unitLimits(), { KIT_CONNECTOR_COLLECTED_DIR: kit.dir });
  const daemon = await kit.start();
  console.log(`daemon ${daemon.pid}`);
  const service = await startCloudService(kit, broker.url, service_port, signal);
  const real = await realKeys(kit);

  const random = seededRandom(seed);
  floodMavlink(mavlink_port, random, signal);
  pesterHttp(`http://127.0.0.1:${kit_port}`, random, signal);
  pesterHttp(`http://127.0.0.1:${service_port}`, random, signal);
  const key = (await readFile(join(kit.dir, 'state', 'service-key'), 'utf8')).trim();
  askTooOften(`http://127.0.0.1:${kit_port}`, key, kit.kit_id, signal);
  await babbleDown(broker.url, kit.kit_id, random, signal);
  await poisonService(broker.url, random, signal);

  const samples: Sample[] = [];
  const started_ms = performance.now();
  while (performance.now() - started_ms < minutes * 60_000) {
    await sleep(sample_every_ms, signal);
    const isCollected = samples.length % samples_a_collection === 0;
    const sample: Sample = {
      at_s: Math.round((performance.now() - started_ms) / 1_000),
      daemon_mb: await residentMb(daemon.pid),
      service_mb: await residentMb(service.pid),
      ...(isCollected && {
        in_use: { daemon: await inUse(daemon, kit.dir), service: await inUse(service, kit.dir) },
      }),
      state: await stateOf(kit, real).catch(() => undefined),
      loop_max_ms: await loopMaxMs(`http://127.0.0.1:${metrics_port}/metrics`),
      cpu_pressure_pct: await cpuPressure(),
      positions: cloud.on('feed/').filter(({ channel }) => channel.endsWith('/gps')).length,
      log_lines: daemon.log().length,
      service_status: await statusOf(`http://127.0.0.1:${service_port}/ready`),
    };
    samples.push(sample);
    // The course is known even if the hour breaks off.
    console.log(JSON.stringify(sample));
  }
  const survived = { daemon: await isAlive(daemon), service: await isAlive(service) };
  return { samples, survived, loudest: loudestOf(daemon) };
}

/** The limits of memory with which the unit starts the daemon, as its environment. */
async function unitLimits(): Promise<Record<string, string>> {
  const unit = await readFile(new URL('../../../systemd/kit-connector.service', import.meta.url), 'utf8');
  const flags = [...unit.matchAll(/--max-[a-z-]+=\d+/gu)].map(([flag]) => flag);
  const [, arenas] = /^Environment=MALLOC_ARENA_MAX=(\d+)$/mu.exec(unit) ?? [];
  if (flags.length === 0 || arenas === undefined) throw new Error('the unit has no limits of memory');
  // More options, such as --inspect, to look for the cause of what grows.
  const more = process.env['KIT_CONNECTOR_SOAK_NODE_OPTIONS'] ?? '';
  const options = [...flags, `--import=${collector}`, more];
  return { NODE_OPTIONS: options.join(' ').trim(), MALLOC_ARENA_MAX: arenas };
}

async function inUse(child: Child, dir: string): Promise<InUse> {
  const collected = join(dir, String(child.pid));
  await rm(collected, { force: true });
  child.send('SIGUSR2');
  await eventually('the garbage is collected', () => existsSync(collected));
  return inUseShape.parse(JSON.parse(await readFile(collected, 'utf8')));
}

function loudestOf(daemon: Child): Soak['loudest'] {
  const bySentence = Map.groupBy(daemon.log(), ({ msg }) => msg);
  const counts = [...bySentence].map(([msg, lines]) => [msg, lines.length] as const);
  return counts.sort((a, b) => b[1] - a[1]).slice(0, loudest_shown);
}

async function realCameras(kit: Kit, signal: AbortSignal): Promise<readonly object[]> {
  const files = { onvif: join(kit.dir, 'onvif-password'), vendor: join(kit.dir, 'vendor-password') };
  await writeFile(files.onvif, onvif_password, { mode: 0o600 });
  await writeFile(files.vendor, vendor_password, { mode: 0o600 });
  const onvif = await startFakeCamera({ serial: 'REAL-1', password: onvif_password });
  const vendor = new FakeVendorCamera({ tls: await selfSigned(kit.dir), mac: 'EC:71:DB:00:01:10' });
  await vendor.start();
  const stop = async (): Promise<void> => {
    await onvif.stop();
    await vendor.lose();
  };
  signal.addEventListener('abort', () => void stop(), { once: true });
  const local = { host: '127.0.0.1' };
  return [
    {
      driver: 'onvif',
      options: {
        cameras: [{ ...local, name: 'onvif', port: onvif.port, username: 'kit', password_file: files.onvif }],
      },
    },
    {
      driver: 'vendorcam',
      options: { hosts: [{ ...local, name: 'vendor', port: vendor.port, password_file: files.vendor }] },
    },
  ];
}

async function startCloudService(kit: Kit, url: string, port: number, signal: AbortSignal): Promise<Child> {
  const file = join(kit.dir, 'service.yaml');
  const settings = {
    broker: { url },
    client_id: `soak-${randomUUID()}`,
    listen: `127.0.0.1:${port}`,
    database: join(kit.dir, 'service.db'),
  };
  await writeFile(file, JSON.stringify(settings));
  const entry = new URL('../../../src/kit-connector.mjs', import.meta.url).pathname;
  const child = startChild([entry, 'service', '--config', file]);
  signal.addEventListener('abort', () => child.send('SIGKILL'), { once: true });
  await child.printed(/service started/u);
  return child;
}

/** The assets that are there before the attacks begin, all of them online; the gateway is one more. */
async function realKeys(kit: Kit): Promise<readonly string[]> {
  let keys: readonly string[] = [];
  await eventually('the real devices are online', async () => {
    const { assets } = await kit.status();
    keys = assets
      .filter(({ type, status }) => type !== 'gateway' && status === 'online')
      .map(({ key }) => key);
    return keys.length === real_devices;
  });
  return keys;
}

async function loopMaxMs(url: string): Promise<number | undefined> {
  const text = await fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
    async (response) => response.text(),
    () => '',
  );
  const [, seconds] = /event_loop_lag_seconds\{[^}]*figure="max"[^}]*\} (\S+)/u.exec(text) ?? [];
  return seconds === undefined ? undefined : Math.round(Number(seconds) * 1_000);
}

async function cpuPressure(): Promise<number | undefined> {
  const text = await readFile('/proc/pressure/cpu', 'utf8').catch(() => '');
  const [, share] = /^some avg10=(\S+)/u.exec(text) ?? [];
  return share === undefined ? undefined : Number(share);
}

async function stateOf(kit: Kit, real: readonly string[]): Promise<NonNullable<Sample['state']>> {
  const { assets, outbox } = await kit.status();
  const online = assets.filter(({ key, status }) => real.includes(key) && status === 'online');
  return { balanced: outbox.balanced, real_online: online.length };
}

async function statusOf(url: string): Promise<number> {
  return fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
    ({ status }) => status,
    () => 0,
  );
}

async function isAlive(child: Child): Promise<boolean> {
  return Promise.race([
    child.ended.then(() => false),
    sleep(100, new AbortController().signal).then(() => true),
  ]);
}
