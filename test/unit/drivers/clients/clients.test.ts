/** The clients driver as a whole: conformance, and a real dnsmasq with real DHCP clients in network namespaces. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clients, texts } from '../../../../drivers/clients/clients.ts';
import { type Client, kitTelemetry } from '../../../../src/contract/kit.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Namespace, withNamespace } from '../../../support/gateway/netns.ts';
import { dyingWithUs, peerMissing, program, rootMissing } from '../../../support/peers.ts';
import { makeDirectory, run, withDirectory } from '../../../support/temporary.ts';

/** A bridge with one hardware port and one of a container's, as far as the driver reads it. */
async function fakeLan(sys: string): Promise<void> {
  const net = join(sys, 'class/net');
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(net, path, '..'), { recursive: true });
    await writeFile(join(net, path), `${text}\n`);
  };
  for (const [at, bridge] of ['br-lan', 'docker0'].entries()) {
    await write(`${bridge}/ifindex`, String(900 + at));
    await write(`${bridge}/address`, '02:00:00:00:00:01');
    await mkdir(join(net, bridge, 'brif'));
  }
  await write('eth1/device/vendor', '0x1');
  await write('eth1/brport/port_no', '0x1');
  await write('veth1/brport/port_no', '0x1');
  await symlink('../../eth1/brport', join(net, 'br-lan/brif/eth1'));
  await symlink('../../veth1/brport', join(net, 'docker0/brif/veth1'));
  const heard = Buffer.from('0200000000110100000000000000000002000000000101010000000000000000', 'hex');
  await writeFile(join(net, 'br-lan/brforward'), heard);
}

describe('the clients driver', () => {
  let sys = '';
  beforeAll(async () => {
    sys = await makeDirectory();
    await fakeLan(sys);
  });
  afterAll(async () => rm(sys, { recursive: true }));
  driverConformance({
    driver: clients,
    options: () => ({ roots: { sys }, leases: [] }),
    peer: {
      start: async () => undefined,
      lose: async () => undefined,
      restore: async () => undefined,
      stop: async () => undefined,
    },
    without: { loss: 'it has no asset of its own', commands: 'it has none' },
  });

  it('finds the bridge with a hardware port, and not that of the containers', async () => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'leases');
      await writeFile(file, '0 02:00:00:00:00:11 192.168.7.50 tablet *\n');
      const lab = driverLab(clients, { roots: { sys }, leases: [file, dir] });
      await lab.until('a report', () => lab.kit.clients !== undefined);
      expect(lab.kit.clients).toEqual([
        { mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: 'tablet', type: 'wired' },
      ]);
      expect(lab.shown.facts).toMatchObject({ clients: 1, interfaces: 'br-lan' });
      expect(String(lab.shown.facts['reason'])).toContain('is not a regular file');
      await lab.stop();
    });
  });

  it('reports an empty list before it fails on a missing network', async () => {
    const lab = driverLab(clients, { roots: { sys }, leases: [], interval_s: 1 });
    await lab.until('a report', () => lab.kit.clients?.length === 1);
    await rm(join(sys, 'class/net/br-lan'), { recursive: true });
    await expect(lab.ended).rejects.toThrow(DeviceUnreachable);
    expect(lab.kit.clients).toEqual([]);
  });

  it('names the interface that does not exist', async () => {
    const lab = driverLab(clients, { interfaces: ['no-such0'] });
    await expect(lab.ended).rejects.toThrow(texts.interface_not_found('no-such0'));
  });
});

/** A program in a namespace; ends with `stop`. */
function start(space: Namespace, command: readonly string[]) {
  const [file = '', ...args] = [...dyingWithUs(), ...space.prefix, ...command];
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (chunk: string) => {
    text += chunk;
  });
  return {
    lines: () => text.split('\n').slice(0, -1),
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await exited;
    },
  };
}

const nameOf = (space: Namespace): string => space.prefix.at(-1) ?? '';

/** A device on a port of the bridge that asks for an address and says what it is called. */
async function joinNetwork(kit: Namespace, device: Namespace, who: Who): Promise<void> {
  const { port, mac, host_name, script } = who;
  const peer = ['peer', 'name', 'eth0', 'address', mac, 'netns', nameOf(device)];
  await run('ip', '-n', nameOf(kit), 'link', 'add', port, 'type', 'veth', ...peer);
  await run('ip', '-n', nameOf(kit), 'link', 'set', port, 'master', 'br-lan', 'up');
  await run('ip', '-n', nameOf(device), 'link', 'set', 'eth0', 'up');
  await run(
    'ip',
    'netns',
    'exec',
    nameOf(device),
    program('udhcpc'),
    '-i',
    'eth0',
    '-n',
    '-q',
    '-t',
    '10',
    '-T',
    '1',
    '-s',
    script,
    '-x',
    `hostname:${host_name}`,
  );
}

interface Who {
  readonly port: string;
  readonly mac: string;
  readonly host_name: string;
  readonly script: string;
}

describe.skipIf(rootMissing() || peerMissing('ip', 'dnsmasq', 'udhcpc'))('with a real dnsmasq', () => {
  it(
    'lists present devices with their names of dnsmasq, and drops those that left',
    { timeout: 90_000 },
    async () => {
      await withDirectory(async (dir) =>
        withNamespace(async (kit) =>
          withNamespace(async (one) =>
            withNamespace(async (two) => {
              const script = join(dir, 'bound');
              await writeFile(
                script,
                '#!/bin/sh\n[ "$1" = bound ] || exit 0\nip addr add "$ip/24" dev "$interface"\n',
              );
              await chmod(script, 0o755);
              const here = nameOf(kit);
              await run('ip', '-n', here, 'link', 'add', 'br-lan', 'type', 'bridge');
              await run('ip', '-n', here, 'addr', 'add', '192.168.77.1/24', 'dev', 'br-lan');
              await run('ip', '-n', here, 'link', 'set', 'br-lan', 'up');
              const leases = join(dir, 'leases');
              const dnsmasq = start(kit, [
                program('dnsmasq'),
                '--keep-in-foreground',
                '--conf-file=/dev/null',
                '--user=root',
                '--port=0',
                '--interface=br-lan',
                '--bind-interfaces',
                '--no-ping',
                '--dhcp-range=192.168.77.50,192.168.77.99,1h',
                `--dhcp-leasefile=${leases}`,
                `--pid-file=${join(dir, 'pid')}`,
                `--log-facility=${join(dir, 'log')}`,
              ]);
              const options = { interval_s: 1, interfaces: ['br-lan'], leases: [leases], present_s: 60 };
              const entry = new URL('../../../support/gateway/clients-process.ts', import.meta.url).pathname;
              const driver = start(kit, [process.execPath, entry, JSON.stringify(options)]);
              const latest = (): readonly Client[] => {
                const line = driver.lines().at(-1);
                return line === undefined ? [] : (kitTelemetry.parse(JSON.parse(line)).clients ?? []);
              };
              try {
                await joinNetwork(kit, one, {
                  port: 'lan1',
                  mac: '02:00:00:00:00:11',
                  host_name: 'tablet',
                  script,
                });
                await joinNetwork(kit, two, {
                  port: 'lan2',
                  mac: '02:00:00:00:00:22',
                  host_name: 'Bob"s <b>phone',
                  script,
                });
                await eventually(
                  'both are shown',
                  () => latest().length === 2 && latest().every(({ ip }) => ip !== null),
                  20_000,
                );
                expect(latest()).toMatchObject([
                  { mac: '02:00:00:00:00:11', name: 'tablet', type: 'wired' },
                  { mac: '02:00:00:00:00:22', name: null, type: 'wired' },
                ]);
                expect(latest()[0]?.ip).toMatch(/^192\.168\.77\.[5-9]\d$/u);
                await run('ip', '-n', nameOf(two), 'link', 'set', 'eth0', 'down');
                await eventually('the phone is gone', () => latest().length === 1);
                expect(latest()).toMatchObject([{ mac: '02:00:00:00:00:11' }]);
              } finally {
                await driver.stop();
                await dnsmasq.stop();
              }
            }),
          ),
        ),
      );
    },
  );
});
