/** Partner assets at the kit's own service and at the cloud's: the same at both, also after one was away, over a real broker. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drivers } from '../../../drivers/index.ts';
import { type App, startApp } from '../../../src/kit/app/app.ts';
import { readConfig } from '../../../src/kit/config/config.ts';
import { vouched, systemClock } from '../../../src/platform/clock.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { startStandalone } from '../../../src/cloud/standalone.ts';
import type { RunningService } from '../../../src/cloud/start.ts';
import { openThreadStore } from '../../../src/cloud/store/thread-store.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { kit_id } from '../../unit/kit/config/lab.ts';

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  readonly lat: number | null;
  readonly gps?: { readonly lat: number; readonly bearing: number | null };
  readonly assets: readonly Shown[];
}

const kit = `/api/kits/${kit_id}`;
const patience_ms = 30_000;
/** A command of the gateway that ends by itself where its link does not exist. */
const driverSection =
  "drivers:\n  - driver: gateway\n  - driver: speedtest\n    options:\n      servers: [{ name: home, download_url: 'http://127.0.0.1:9/{bytes}' }]\n";
const speedtest = { payload: { link: 'nope0' } };

interface ShownTask {
  readonly id: string;
  readonly status: string;
  readonly requested_by_name?: string;
}

describe.skipIf(peerMissing('mosquitto'))('Partner assets of a kit with two services', () => {
  let dir: string;
  let broker: Broker;
  let app: App;
  let cloud: RunningService | undefined;
  const made = makeKey({ label: 'ops', scopes: [...scopes], kits: [kit_id], expires_ms: null }, Date.now());

  beforeEach(async () => {
    dir = await makeDirectory();
    await mkdir(join(dir, 'kit'));
    broker = await startMosquitto();
    await startCloud();
    app = await startKit();
  });
  afterEach(async () => {
    await app?.stop();
    await cloud?.stop();
    await broker?.stop();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
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
        connect_timeout_ms: 5_000,
      },
      client_id: 'cloud',
      listen: { host: '127.0.0.1', port: 0 },
      hosts: [],
      media_origins: [],
      limits: { reads_per_s: 1_000, changes_per_s: 100, fixes_per_s: 100, map_per_s: 100 },
      page: pageOnDemand(),
      version: '0',
      log: recordingLog(),
    });
  }

  async function startKit(): Promise<App> {
    const state_dir = join(dir, 'kit');
    const text = `kit_id: ${kit_id}\nclock: trusted\nbroker:\n  url: ${broker.url}\nstate_dir: ${state_dir}\nruntime_dir: ${dir}\nservice:\n  listen: 127.0.0.1:0\n  limits: { reads_per_s: 1000 }\n${driverSection}`;
    const file = join(dir, 'config.yaml');
    await writeFile(file, text);
    const config = await readConfig(file, { drivers, credentials_dir: undefined });
    if (!config.broker) throw new Error('the section is there');
    const log = createLog({ level: 'error', out: { write: () => true }, readable: false });
    return startApp(config, {
      log,
      clock: systemClock({ evidence: vouched }),
      version: '0.0.0',
      broker: config.broker,
    });
  }

  const sides = {
    kit: () => ({ url: app.service?.url() ?? '', key: kitKey }),
    cloud: () => ({ url: cloud?.url ?? '', key: made.text }),
  };
  let kitKey = '';

  async function ask<T = Shown>(
    side: keyof typeof sides,
    path: string,
    body?: object,
    method?: string,
  ): Promise<T> {
    if (side === 'kit') kitKey = (await readKey()).trim();
    const { url, key } = sides[side]();
    const response = await fetch(`${url}${kit}${path}`, {
      method: method ?? (body ? 'POST' : 'GET'),
      headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${side} ${path}: ${response.status} ${answer}`);
    return JSON.parse(answer === '' ? 'null' : answer) as T;
  }

  async function readKey(): Promise<string> {
    return readFile(app.service?.key_file ?? '', 'utf8');
  }

  const names = async (side: keyof typeof sides): Promise<readonly string[]> =>
    (await ask(side, '/assets')).assets
      .filter(({ protocol }) => protocol === 'partner')
      .map(({ name }) => name);
  const register = async (side: keyof typeof sides, name: string): Promise<string> =>
    (await ask(side, '/assets', { name, type: 'vehicle', metadata: { from: side } })).id;
  const isShown = async (side: keyof typeof sides, ...wanted: readonly string[]): Promise<void> =>
    eventually(
      `${wanted.join(', ')} at the ${side}`,
      async () => same(await names(side), wanted),
      patience_ms,
    );
  const same = (some: readonly string[], others: readonly string[]): boolean =>
    JSON.stringify([...some].sort()) === JSON.stringify([...others].sort());

  it('are the same at both, with their fixes and removals', { timeout: 120_000 }, async () => {
    const truck = await register('kit', 'Truck');
    const plane = await register('cloud', 'Plane');
    await isShown('cloud', 'Plane', 'Truck');
    await isShown('kit', 'Plane', 'Truck');
    await ask('kit', `/assets/${truck}/location`, { lat: 47.1, lon: 8, bearing: 90 });
    await ask('cloud', `/assets/${plane}/location`, { lat: 47.2, lon: 8 });
    const isAt = async (side: keyof typeof sides, id: string, lat: number): Promise<void> =>
      eventually(
        `${id} is at ${lat} at the ${side}`,
        async () => (await ask(side, `/assets/${id}`)).lat === lat,
        patience_ms,
      );
    await isAt('cloud', truck, 47.1);
    await isAt('kit', plane, 47.2);
    expect((await ask('cloud', `/assets/${truck}/telemetry`)).gps).toMatchObject({ lat: 47.1, bearing: 90 });
    // Each may be pushed at the other side, too.
    await ask('cloud', `/assets/${truck}/location`, { lat: 47.3, lon: 8 });
    await ask('kit', `/assets/${plane}/location`, { lat: 47.4, lon: 8 });
    await isAt('kit', truck, 47.3);
    await isAt('cloud', plane, 47.4);
    await ask('cloud', `/assets/${truck}`, undefined, 'DELETE');
    await ask('kit', `/assets/${plane}`, undefined, 'DELETE');
    await isShown('kit');
    await isShown('cloud');
  });

  it('have tasks of both sides, each with its author, payload and end', { timeout: 120_000 }, async () => {
    app.startDrivers();
    const gateway = async (side: keyof typeof sides): Promise<string> =>
      (await ask(side, '/assets')).assets.find(({ type }) => type === 'gateway')?.id ?? '';
    for (const [from, to] of [
      ['kit', 'cloud'],
      ['cloud', 'kit'],
    ] as const) {
      await eventually(`the gateway at the ${from}`, async () => (await gateway(from)) !== '', patience_ms);
      const path = `/assets/${await gateway(from)}/commands/speedtest`;
      const { id } = await ask<ShownTask>(from, path, speedtest);
      const ended = async (side: keyof typeof sides): Promise<ShownTask> => {
        let shown: ShownTask | undefined;
        const isEnded = async (): Promise<boolean> => {
          shown = await ask<ShownTask>(side, `/tasks/${id}`).catch(() => undefined);
          return shown?.status === 'failed';
        };
        await eventually(`its end at the ${side}`, isEnded, patience_ms);
        if (!shown) throw new Error('no task');
        return shown;
      };
      const there = await ended(to);
      const here = await ended(from);
      expect(there).toMatchObject({ command_name: 'speedtest', ...speedtest });
      expect(here.requested_by_name).toBe(there.requested_by_name ?? 'nobody');
    }
  });

  it('are merged after they changed while the other side was away', { timeout: 120_000 }, async () => {
    const old = await register('kit', 'Old');
    const other = await register('cloud', 'Other');
    await isShown('cloud', 'Old', 'Other');
    await isShown('kit', 'Old', 'Other');
    await broker.kill();
    const late = await register('kit', 'Kit while offline');
    await ask('kit', `/assets/${late}/location`, { lat: 48, lon: 8 });
    await ask('kit', `/assets/${other}`, undefined, 'DELETE');
    await register('cloud', 'Cloud while offline');
    await ask('cloud', `/assets/${old}`, undefined, 'DELETE');
    await ask('cloud', `/assets/${other}/location`, { lat: 49, lon: 8 });
    await broker.start();
    await isShown('kit', 'Cloud while offline', 'Kit while offline');
    await isShown('cloud', 'Cloud while offline', 'Kit while offline');
    await eventually('the fix', async () => (await ask('cloud', `/assets/${late}`)).lat === 48, patience_ms);
  });

  it(
    'are there again for a cloud that lost its database, and stay over a restart of the kit',
    { timeout: 120_000 },
    async () => {
      await register('kit', 'Truck');
      await register('cloud', 'Plane');
      await isShown('kit', 'Plane', 'Truck');
      await isShown('cloud', 'Plane', 'Truck');
      await cloud?.stop();
      for (const end of ['', '-wal', '-shm']) await rm(join(dir, `cloud.db${end}`), { force: true });
      await startCloud();
      await isShown('cloud', 'Plane', 'Truck');
      await app.stop();
      app = await startKit();
      await isShown('kit', 'Plane', 'Truck');
      await isShown('cloud', 'Plane', 'Truck');
      expect([...(await names('cloud'))].sort()).toEqual(['Plane', 'Truck']);
    },
  );
});
