/** Partner assets at the kit's own service and at the cloud's: the same at both, also after one was away, over a real broker. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Child } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { type KitAndService, withKitAndService } from '../../support/service/kit-and-service.ts';

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  readonly lat: number | null;
  readonly gps?: { readonly lat: number; readonly bearing: number | null };
  readonly assets: readonly Shown[];
}

const patience_ms = 30_000;
/** A command of the gateway that ends by itself where its link does not exist. */
const drivers = [
  { driver: 'gateway' },
  {
    driver: 'speedtest',
    options: { servers: [{ name: 'home', download_url: 'http://127.0.0.1:9/{bytes}' }] },
  },
];
const speedtest = { payload: { link: 'nope0' } };

interface ShownTask {
  readonly id: string;
  readonly status: string;
  readonly requested_by_name?: string;
}

describe.skipIf(peerMissing('mosquitto'))('Partner assets of a kit with two services', () => {
  let scene: KitAndService;
  let daemon: Child;
  let port: number;
  let over: PromiseWithResolvers<void>;
  let played: Promise<void>;

  beforeEach(async () => {
    port = await freePort();
    over = Promise.withResolvers();
    const ready = Promise.withResolvers<void>();
    played = withKitAndService({}, async (made) => {
      scene = made;
      await scene.kit.configure({
        broker: { url: scene.broker.url },
        service: { listen: `127.0.0.1:${port}`, limits: { reads_per_s: 1_000 } },
        drivers,
      });
      daemon = await scene.kit.start();
      ready.resolve();
      await over.promise;
    });
    await Promise.race([ready.promise, played]);
  });
  afterEach(async () => {
    over.resolve();
    await played;
  });

  const sides = {
    kit: async () => ({
      url: `http://127.0.0.1:${port}`,
      key: (await readFile(join(scene.kit.dir, 'state/service-key'), 'utf8')).trim(),
    }),
    cloud: async () => ({ url: scene.service.url, key: scene.service.key }),
  };

  async function ask<T = Shown>(
    side: keyof typeof sides,
    path: string,
    body?: object,
    method?: string,
  ): Promise<T> {
    const { url, key } = await sides[side]();
    const response = await fetch(`${url}/api/kits/${scene.kit.kit_id}${path}`, {
      method: method ?? (body ? 'POST' : 'GET'),
      headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${side} ${path}: ${response.status} ${answer}`);
    return JSON.parse(answer === '' ? 'null' : answer) as T;
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
    await scene.broker.kill();
    const late = await register('kit', 'Kit while offline');
    await ask('kit', `/assets/${late}/location`, { lat: 48, lon: 8 });
    await ask('kit', `/assets/${other}`, undefined, 'DELETE');
    await register('cloud', 'Cloud while offline');
    await ask('cloud', `/assets/${old}`, undefined, 'DELETE');
    await ask('cloud', `/assets/${other}/location`, { lat: 49, lon: 8 });
    await scene.broker.start();
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
      await scene.service.end('SIGTERM');
      for (const end of ['', '-wal', '-shm']) await rm(join(scene.dir, `service.db${end}`), { force: true });
      await scene.service.start();
      await isShown('cloud', 'Plane', 'Truck');
      await daemon.end('SIGTERM');
      daemon = await scene.kit.start();
      await isShown('kit', 'Plane', 'Truck');
      await isShown('cloud', 'Plane', 'Truck');
      expect([...(await names('cloud'))].sort()).toEqual(['Plane', 'Truck']);
    },
  );
});
