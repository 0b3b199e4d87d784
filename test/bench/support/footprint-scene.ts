/** A kit at its nominal size: 4 drones, 8 ONVIF and 8 vendor cameras, 4 WAN links, a broker, all in processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { withNamespace } from '../../support/gateway/netns.ts';
import { program } from '../../support/peers.ts';
import { startSubscriber, type Subscriber } from '../../support/brokers/subscriber.ts';
import { run } from '../../support/temporary.ts';
import { password as vendor_password } from '../../support/cameras/vendorcam-lab.ts';
import { end } from './footprint-daemon.ts';

const drones = 4;
const cameras_each = 8;
const cameras_within_ms = 60_000;
const mavlink_port = 14_550;
const onvif_password = 'bench';
/** What the links are probed against; the kernel of the other side answers. */
const targets = ['198.18.0.1', '198.18.0.2'] as const;
const links = ['satellite', 'cellular', 'cellular', 'ethernet'] as const;

/** Drones and cameras that must be online before anything is measured; the gateway is an asset too. */
export const assets_online = drones + 2 * cameras_each + 1;

export interface Scene {
  /** Put before the command line of the daemon. */
  readonly prefix: readonly string[];
  readonly broker_url: string;
  readonly drivers: readonly object[];
  readonly subscriber: Subscriber;
}

/** Builds it, runs `fn` and takes it down. Needs root and ip. */
export async function withScene<T>(dir: string, fn: (scene: Scene) => Promise<T>): Promise<T> {
  return withNamespace(async (kit) =>
    withNamespace(async (internet) => {
      await joinLinks(nameOf(kit.prefix), nameOf(internet.prefix));
      const peers: ChildProcess[] = [];
      const socket = join(dir, 'broker.sock');
      const broker = await startMosquitto({ prefix: kit.prefix, socket });
      const subscriber = await startSubscriber({ socket });
      try {
        const cameras = startInside(kit.prefix, peers, 'cameras', [cameras_each]);
        const told: unknown[] = await once(cameras, 'message', {
          signal: AbortSignal.timeout(cameras_within_ms),
        });
        startInside(kit.prefix, peers, 'mavlink-sender', [mavlink_port, drones]);
        const drivers = await driversOf(dir, portsTold.parse(told[0]));
        return await fn({ prefix: kit.prefix, broker_url: broker.url, drivers, subscriber });
      } finally {
        for (const peer of peers) await end(peer);
        await subscriber.stop();
        await broker.stop();
      }
    }),
  );
}

function nameOf(prefix: readonly string[]): string {
  return prefix.at(-1) ?? '';
}

/** Each link is a wire to the other namespace, with a default route of its own, the first preferred. */
async function joinLinks(kit: string, internet: string): Promise<void> {
  for (const target of targets) await run('ip', '-n', internet, 'addr', 'add', `${target}/32`, 'dev', 'lo');
  for (const index of links.keys()) {
    const [here, there, net] = [`wan${index}`, `net${index}`, `100.64.${index}`];
    await run('ip', 'link', 'add', here, 'netns', kit, 'type', 'veth', 'peer', there, 'netns', internet);
    await run('ip', '-n', internet, 'addr', 'add', `${net}.1/24`, 'dev', there);
    await run('ip', '-n', internet, 'link', 'set', there, 'up');
    await run('ip', '-n', kit, 'addr', 'add', `${net}.2/24`, 'dev', here);
    await run('ip', '-n', kit, 'link', 'set', here, 'up');
    const metric = String(100 * (index + 1));
    await run('ip', '-n', kit, 'route', 'add', 'default', 'via', `${net}.1`, 'dev', here, 'metric', metric);
  }
  const echo = 'net.ipv4.ping_group_range=0 2147483647';
  await run('ip', 'netns', 'exec', kit, program('sysctl'), '-qw', echo);
}

/** Starts `NAME-process.ts` inside. */
function startInside(
  prefix: readonly string[],
  peers: ChildProcess[],
  name: string,
  args: readonly number[],
): ChildProcess {
  const entry = new URL(`../processes/${name}-process.ts`, import.meta.url).pathname;
  const [command = '', ...rest] = [...prefix, process.execPath, entry, ...args.map(String)];
  const child = spawn(command, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  peers.push(child);
  return child;
}

const portsTold = z.strictObject({ onvif: z.array(z.number()), vendor: z.array(z.number()) });

async function driversOf(dir: string, ports: z.output<typeof portsTold>): Promise<readonly object[]> {
  const files = { onvif: join(dir, 'onvif-password'), vendor: join(dir, 'vendor-password') };
  await writeFile(files.onvif, onvif_password, { mode: 0o600 });
  await writeFile(files.vendor, vendor_password, { mode: 0o600 });
  const camera = (port: number, index: number) => ({ name: `camera ${index}`, host: '127.0.0.1', port });
  return [
    { driver: 'gateway' },
    {
      driver: 'links',
      options: {
        wan: Object.fromEntries(links.map((type, index) => [`wan${index}`, { type }])),
        probe: { targets },
      },
    },
    {
      driver: 'mavlink',
      options: { links: [{ kind: 'udp_listen', host: '127.0.0.1', port: mavlink_port }] },
    },
    {
      driver: 'onvif',
      options: {
        cameras: ports.onvif.map((port, index) => ({
          ...camera(port, index),
          username: 'kit',
          password_file: files.onvif,
        })),
      },
    },
    {
      driver: 'vendorcam',
      options: {
        hosts: ports.vendor.map((port, index) => ({
          ...camera(port, index + cameras_each),
          password_file: files.vendor,
        })),
      },
    },
  ];
}
