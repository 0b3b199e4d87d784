/** Files of a driver reach the cloud over a real broker: byte for byte and once each, whatever restarts or is cut meanwhile. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { startStandalone } from '../../../src/cloud/standalone.ts';
import type { RunningService } from '../../../src/cloud/start.ts';
import { openThreadStore } from '../../../src/cloud/store/thread-store.ts';
import { type App, startApp } from '../../../src/kit/app/app.ts';
import { readConfig } from '../../../src/kit/config/config.ts';
import { FileStore } from '../../../src/kit/files/file-store.ts';
import { systemClock, vouched } from '../../../src/platform/clock.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { aborted, sleep } from '../../../src/platform/time.ts';
import { type DroneHost, drone, scriptedDriver } from '../../fakes/scripted-driver.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { type Proxy, startProxy } from '../../support/brokers/proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { kit_id } from '../../unit/kit/config/lab.ts';

/** Puts files into the folder of a kit, as if drivers of an earlier run had; returns their hashes. */
async function seed(dir: string, total: number): Promise<readonly string[]> {
  const ending = new AbortController();
  const store = new FileStore({
    dir,
    limits: () => ({ bytes_max: 2 * total, age_max_ms: 1e9, free_bytes_min: 0 }),
    now: Date.now,
    onDropped: () => undefined,
    signal: ending.signal,
  });
  const hashes: string[] = [];
  for (let each = 0; each < files_count; each += 1) {
    const bytes = randomBytes(Math.round(total / files_count));
    const about = { kind: 'flight_log', asset_id: null, name: `${each}.bin` } as const;
    const content_type = 'application/octet-stream';
    const { sha256 } = await store.add({ bytes }, { ...about, content_type, at_ms: Date.now() });
    hashes.push(sha256);
  }
  ending.abort();
  await store.close();
  return hashes;
}

/** A figure of the metrics by its name and labels. */
function figuresIn(text: string): (name: string) => number | undefined {
  return (name) => {
    const line = text.split('\n').find((each) => each.startsWith(`kit_connector_${name} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
  };
}

/** The value once it no longer changes. */
async function still(value: () => number): Promise<number> {
  for (let [before, same] = [value(), 0]; ; before = value()) {
    await sleep(100, new AbortController().signal);
    same = value() === before ? same + 1 : 0;
    if (same === 5) return before;
  }
}

/** `FILES_CAMPAIGN=1000,200` for a gigabyte through 200 cuts and restarts. */
const [megabytes = 6, cuts = 4] = (process.env['FILES_CAMPAIGN'] ?? '6,4').split(',').map(Number);
const files_count = 3;

const listed = z.object({ files: z.array(z.object({ id: z.string(), state: z.string() })) });

describe.skipIf(peerMissing('mosquitto'))('Files of a kit with a broker and a service', () => {
  let dir: string;
  let broker: Broker;
  /** Between the kit and the service; a test can cut it. */
  let link: Proxy;
  let app: App | undefined;
  let cloud: RunningService | undefined;
  let port: number;
  let host: DroneHost | undefined;
  const made = makeKey({ label: 'ops', scopes: [...scopes], kits: '*', expires_ms: null }, Date.now());

  beforeEach(async () => {
    dir = await makeDirectory();
    await mkdir(join(dir, 'kit'));
    port = await freePort();
    [broker, link] = [await startMosquitto(), await startProxy(port)];
    await startCloud();
  });
  afterEach(async () => {
    await app?.stop();
    await cloud?.stop();
    await link?.close();
    await broker?.stop();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    app = undefined;
  });

  async function startCloud(): Promise<void> {
    const store = await openThreadStore(join(dir, 'cloud.db'));
    if ((await store.keys()).length === 0) await store.addKey(made.key);
    const unused = { ca: undefined, cert: undefined, key: undefined, password: undefined };
    cloud = await startStandalone({
      store,
      broker: {
        ...unused,
        url: broker.url,
        username: 'cloud',
        protocol: 'auto',
        keepalive_s: 30,
        connect_timeout_ms: 10_000,
      },
      client_id: 'cloud',
      listen: { host: '127.0.0.1', port },
      hosts: [],
      media_origins: [],
      limits: { reads_per_s: 1_000, changes_per_s: 100, fixes_per_s: 100, map_per_s: 100 },
      files: {
        dir: join(dir, 'files'),
        url: `http://127.0.0.1:${link.port}`,
        bytes_max: 1e9,
        days: { default: 1 },
      },
      page: pageOnDemand(),
      version: '0',
      log: recordingLog(),
    });
  }

  async function startKit(files = 'kbps_max: 0'): Promise<void> {
    const file = join(dir, 'kit', 'config.yaml');
    const driver = scriptedDriver(async (its) => {
      its.announce(drone());
      host = its;
      await aborted(its.signal);
    });
    await writeFile(
      file,
      `kit_id: ${kit_id}\nclock: trusted\nstate_dir: ${join(dir, 'kit')}\nruntime_dir: ${join(dir, 'kit')}\nbroker: { url: '${broker.url}' }\nfiles: { ${files} }\ndrivers: [{ driver: scripted }]\n`,
    );
    const config = await readConfig(file, {
      drivers: [{ name: 'scripted', load: async () => driver }],
      credentials_dir: undefined,
    });
    if (!config.broker) throw new Error('no broker');
    app = await startApp(config, {
      log: createLog({ level: 'error', out: { write: () => true }, readable: false }),
      clock: systemClock({ evidence: vouched }),
      version: '0',
      broker: config.broker,
    });
    app.startDrivers();
    await eventually('the driver runs', () => host !== undefined);
  }

  async function add(content: Uint8Array): Promise<string> {
    if (!host) throw new Error('no driver');
    return host.files.add({
      kind: 'flight_log',
      asset_key: 'drone-1',
      name: 'log.bin',
      at_ms: Date.now(),
      content: { bytes: content },
    });
  }

  const api = async (path: string, method = 'GET'): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/api/kits/${kit_id}/files${path}`, {
      method,
      headers: { 'x-api-key': made.text },
    });

  const stateOf = async (id: string): Promise<string | undefined> => {
    const answer = await api('').catch(() => undefined);
    if (!answer?.ok) return undefined;
    return listed.parse(await answer.json()).files.find((each) => each.id === id)?.state;
  };

  const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
  const received = async (id: string): Promise<string> =>
    hashOf(new Uint8Array(await (await api(`/${id}/content`)).arrayBuffer()));

  it('arrive in spite of cuts, and of restarts of both sides in the middle', async () => {
    const options = `bytes_max_mb: ${megabytes * 2}, kbps_max: ${megabytes > 6 ? 0 : 12_000}`;
    await startKit(options);
    const total = megabytes * 1e6;
    const hashes = new Map<string, string>();
    for (let each = 0; each < files_count; each += 1) {
      const content = randomBytes(Math.round(total / files_count));
      hashes.set(await add(content), hashOf(content));
    }
    for (let round = 0; round < cuts; round += 1) {
      const before = link.counters.up_bytes;
      const some = (total / (cuts + 1)) * 0.6;
      await eventually('some of it has passed', () => link.counters.up_bytes > before + some);
      if (round % 10 === 1) {
        await cloud?.stop();
        await startCloud();
      } else if (round % 10 === 2) {
        await app?.stop();
        host = undefined;
        await startKit(options);
      } else link.cut();
    }
    for (const [id, hash] of hashes) {
      await eventually('the cloud has it', async () => (await stateOf(id)) === 'stored');
      expect(await received(id)).toBe(hash);
    }
    await eventually('the kit deletes its copies', async () => {
      const { files } = (await app?.local.report()) ?? {};
      return files?.kept.files === 0 && files.uploaded === files_count;
    });
    const of = figuresIn((await (await app?.openMetrics())?.scrape()) ?? '');
    expect([of('files'), of('files_bytes'), of('files_ended_total{how="uploaded"}')]).toEqual([
      0,
      0,
      files_count,
    ]);
    expect(of('files_sent_bytes_total')).toBeGreaterThan(0);
    // What a cut leaves unacknowledged passes twice, and not all of it.
    expect(link.counters.up_bytes).toBeLessThan(2 * total);
  });

  it('arrive once each though the daemon is killed, cut off and forbidden to send again and again, without a byte while it is', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      const total = megabytes * 1e6;
      const hashes = await seed(join(kit.dir, 'state/files'), total);
      const configure = async (rule: 'always' | 'never'): Promise<void> =>
        kit.configure({
          broker: { url: broker.url },
          files: {
            bytes_max_mb: megabytes * 2,
            kbps_max: megabytes > 6 ? 0 : 12_000,
            upload: { default: rule },
          },
        });
      await configure('always');
      let daemon = await kit.start();
      let sent_forbidden = 0;
      const reload = async (rule: 'always' | 'never'): Promise<void> => {
        const reloads = (): number => daemon.output().split('configuration reloaded').length;
        const before = reloads();
        await configure(rule);
        daemon.send('SIGHUP');
        await eventually('it is reloaded', () => reloads() > before);
      };
      for (let round = 0; round < cuts; round += 1) {
        const before = link.counters.up_bytes;
        const some = (total / (cuts + 1)) * 0.6;
        await eventually('some of it has passed', () => link.counters.up_bytes > before + some);
        if (round % 4 === 1) {
          await daemon.end('SIGKILL');
          daemon = await kit.start();
        } else if (round % 4 === 3) {
          await reload('never');
          const sent = await still(() => link.counters.up_bytes);
          sent_forbidden += (await still(() => link.counters.up_bytes)) - sent;
          await reload('always');
        } else link.cut();
      }
      expect(sent_forbidden).toBe(0);
      await eventually('the kit has sent all', async () => {
        const { files } = await kit.status();
        return files?.kept.files === 0 && files.uploaded === files_count && files.accepted === files_count;
      });
      const url = `http://127.0.0.1:${port}/api/kits/${kit.kit_id}/files`;
      const headers = { 'x-api-key': made.text };
      const { files } = listed.parse(await (await fetch(url, { headers })).json());
      expect(files.map(({ state }) => state)).toEqual(hashes.map(() => 'stored'));
      const got = files.map(async ({ id }) => {
        const content = await (await fetch(`${url}/${id}/content`, { headers })).arrayBuffer();
        return hashOf(new Uint8Array(content));
      });
      expect((await Promise.all(got)).toSorted()).toEqual(hashes.toSorted());
    });
  });

  it('stay at the kit where the link forbids them, without a byte, and come on order where it allows that', async () => {
    await startKit('upload: { default: never }');
    const id = await add(randomBytes(1_000));
    await eventually('it is announced', async () => (await stateOf(id)) === 'at_kit');
    expect((await api(`/${id}/request`, 'POST')).status).toBe(202);
    await eventually(
      'the order has come',
      async () => (await app?.local.report())?.files?.kept.ordered === 1,
    );
    expect(link.counters.up_bytes).toBe(0);
    await app?.stop();
    host = undefined;
    await startKit('upload: { default: on_order }');
    const other = await add(randomBytes(1_000));
    await eventually('the ordered one comes', async () => (await stateOf(id)) === 'stored');
    expect(await stateOf(other)).toBe('at_kit');
  });
});
