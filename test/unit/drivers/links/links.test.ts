/** The links driver as a whole, on fake machines: what it reports, remembers and leaves behind. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { links } from '../../../../drivers/links/links.ts';
import { texts } from '../../../../drivers/links/texts.ts';
import { kitTelemetry, type Link } from '../../../../src/contract/kit.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeMachine, type FakeMachine } from '../../../support/gateway/fake-machine.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { withDirectory } from '../../../support/temporary.ts';

let machine: FakeMachine;
beforeEach(async () => {
  machine = await fakeMachine();
  await machine.setInterface({ name: 'eth0', rx_bytes: 1_000 });
  await machine.setRoutes([{ device: 'eth0' }]);
});
afterEach(async () => machine.remove());

const options = (more: object = {}) => {
  const { proc, sys } = machine.roots;
  return { interval_s: 0.1, roots: { proc, sys }, ...more };
};

/** Runs the driver in a hub with its own state folder until `play` is over. */
async function withDriver<T>(
  state_dir: string,
  more: object,
  play: (lab: ReturnType<typeof hubLab>, link: (name: string) => Link | undefined) => Promise<T>,
): Promise<T> {
  const lab = hubLab({ configured: ['links'], state_dir });
  void lab.run(links, 'links', { options: options(more) });
  try {
    return await play(lab, (name) => lab.hub.links().find((each) => each.name === name));
  } finally {
    await lab.stop();
  }
}

describe('the links driver', () => {
  driverConformance({
    driver: links,
    options: () => options(),
    peer: {
      start: async () => machine.setPresent(true),
      lose: async () => machine.setPresent(false),
      restore: async () => machine.setPresent(true),
      stop: async () => machine.setPresent(true),
    },
    without: {
      loss: 'it announces no asset: its links are part of the kit',
      commands: 'it has none',
    },
  });
});

describe('the links driver on this machine, over netlink', () => {
  const nothing = async (): Promise<void> => undefined;
  driverConformance({
    driver: links,
    options: () => ({ interval_s: 0.1 }),
    peer: { start: nothing, lose: nothing, restore: nothing, stop: nothing },
    without: { loss: 'the machine itself is the device', commands: 'it has none' },
  });
});

it('reports the links, the one in use first, with the reason of each status', async () => {
  await machine.setInterface({
    name: 'wwan0',
    devtype: 'wwan',
    type: 65_534,
    operstate: 'unknown',
    ifindex: 3,
  });
  await machine.setInterface({ name: 'eth9', ifindex: 4 });
  await machine.setRoutes([
    { device: 'wwan0', metric: 50 },
    { device: 'eth0', metric: 100 },
  ]);
  await withDirectory(async (dir) => {
    await withDriver(
      dir,
      { wan: { eth0: { type: 'satellite', isp: 'Skylink' }, ppp0: {} } },
      async (lab, link) => {
        await eventually('all links', () => lab.hub.links().length === 3);
        expect(lab.hub.links()).toMatchObject([
          { name: 'wwan0', type: 'cellular', status: 'online', reason: texts.not_probed },
          { name: 'eth0', type: 'satellite', status: 'standby', isp: 'Skylink' },
          {
            name: 'ppp0',
            type: 'cellular',
            status: 'offline',
            reason: `${texts.interface_missing}; ${texts.name_matches_nothing(['eth0', 'eth9', 'wwan0'])}`,
          },
        ]);
        await machine.setRoutes([
          { device: 'wwan0', metric: 500 },
          { device: 'eth0', metric: 100 },
        ]);
        await eventually('the other is in use', () => lab.hub.links()[0]?.name === 'eth0');
        expect([link('eth0')?.status, link('wwan0')?.status]).toEqual(['online', 'standby']);
      },
    );
  });
});

it('keeps a link that was unplugged, over a restart too, with what it has carried', async () => {
  await withDirectory(async (dir) => {
    await withDriver(dir, {}, async (lab, link) => {
      await eventually('counting', () => link('eth0')?.usage?.today_rx_gb === 0);
      await machine.setInterface({ name: 'eth0', rx_bytes: 3_001_000 });
      await eventually('usage', () => link('eth0')?.usage?.today_rx_gb === 0.003);
      machine.removeInterface('eth0');
      await eventually('offline', () => link('eth0')?.status === 'offline');
      expect(lab.log.lines.map(({ sentence }) => sentence)).toContain(texts.link_lost);
      await machine.setInterface({ name: 'eth0', rx_bytes: 3_001_000 });
      await eventually('it is back', () =>
        lab.log.lines.some(({ sentence, facts }) => sentence === texts.link_back && 'down_s' in facts),
      );
      machine.removeInterface('eth0');
      await eventually('offline again', () => link('eth0')?.status === 'offline');
    });
    await withDriver(dir, {}, async (lab, link) => {
      await eventually('remembered', () => link('eth0') !== undefined);
      expect(link('eth0')).toMatchObject({
        type: 'ethernet',
        status: 'offline',
        usage: { today_rx_gb: 0.003, month_rx_gb: 0.003 },
      });
      expect(lab.hub.links()[0]?.reason).toBe(texts.interface_missing);
    });
    await withDriver(dir, { ignore: ['eth0'] }, async (lab) => {
      await eventually('a report', () => lab.hub.kit().wans !== undefined);
      expect(lab.hub.links()).toEqual([]);
    });
  });
});

it('follows an interface that is renamed, with what it has carried', async () => {
  await withDirectory(async (dir) => {
    await withDriver(dir, {}, async (lab, link) => {
      await eventually('counting', () => link('eth0')?.usage?.today_rx_gb === 0);
      await machine.setInterface({ name: 'eth0', rx_bytes: 3_001_000 });
      await eventually('usage', () => link('eth0')?.usage?.today_rx_gb === 0.003);
      machine.removeInterface('eth0');
      await machine.setInterface({ name: 'wan0', rx_bytes: 4_001_000 });
      await machine.setRoutes([{ device: 'wan0' }]);
      await eventually('renamed', () => link('wan0')?.usage?.today_rx_gb === 0.004);
      expect(lab.hub.links().map(({ name }) => name)).toEqual(['wan0']);
      expect(lab.log.lines.map(({ sentence }) => sentence)).toContain(texts.link_renamed);
    });
  });
});

it('counts all bytes of an interface that is plugged in while it runs, and no others', async () => {
  await withDirectory(async (dir) => {
    await withDriver(dir, {}, async (_, link) => {
      await eventually('counting', () => link('eth0')?.usage?.today_rx_gb === 0);
      await machine.setInterface({ name: 'eth0', ifindex: 9, rx_bytes: 5_000_000 });
      await eventually('usage', () => link('eth0')?.usage?.today_rx_gb === 0.005);
    });
  });
});

it('counts the usage of a port on its VLAN', async () => {
  await machine.setInterface({
    name: 'eth0.35',
    hardware: false,
    devtype: 'vlan',
    lowers: ['eth0'],
    ifindex: 8,
  });
  await machine.setRoutes([{ device: 'eth0.35' }]);
  await withDirectory(async (dir) => {
    await withDriver(dir, { wan: { eth0: {} } }, async (lab, link) => {
      await eventually('counting', () => link('eth0.35')?.usage?.today_rx_gb === 0);
      await machine.setInterface({ name: 'eth0', rx_bytes: 9_000_000 });
      await eventually('throughput', () => (link('eth0')?.rx_bps ?? 0) > 0);
      expect(link('eth0')?.usage?.today_rx_gb).toBeNull();
      const { reason } = lab.hub.links().find(({ name }) => name === 'eth0') ?? {};
      expect(reason).toContain('its traffic is counted on eth0.35');
    });
  });
});

it('reports throughput and its peak, and none of another interface of the same name', async () => {
  await withDirectory(async (dir) => {
    await withDriver(dir, {}, async (_, link) => {
      await eventually('a rate', () => link('eth0')?.rx_bps === 0);
      await machine.setInterface({ name: 'eth0', rx_bytes: 101_000 });
      await eventually('a peak', () => (link('eth0')?.rx_bps_max ?? 0) > 0);
      await machine.setInterface({
        name: 'eth0',
        rx_bytes: 900_000,
        carrier: '0',
        operstate: 'down',
        ifindex: 7,
      });
      await eventually('offline', () => link('eth0')?.status === 'offline');
      expect(link('eth0')?.latency_ms ?? null).toBeNull();
    });
  });
});

it('keeps its file readable by the owner only, and renames an unreadable one', async () => {
  await withDirectory(async (dir) => {
    await withDriver(dir, {}, async (_, link) => eventually('a report', () => link('eth0') !== undefined));
    const file = join(dir, 'links', 'links.json');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await writeFile(file, '{"version":1,"links":{"eth0":');
    await withDriver(dir, {}, async (lab, link) => {
      await eventually('a report', () => link('eth0') !== undefined);
      const warning = lab.log.lines.find(({ level }) => level === 'warn');
      expect(warning?.sentence).toBe(texts.usage_unreadable);
    });
    await expect(readFile(`${file}.broken`, 'utf8')).resolves.toContain('"eth0":');
  });
});

it('reports the links while the disk accepts no writes, and logs it', async () => {
  await withDirectory(async (dir) => {
    const file = join(dir, 'no-folder');
    await writeFile(file, '');
    const log = await withDriver(file, {}, async (lab, link) => {
      await eventually('a report', () => link('eth0')?.status === 'online');
      return lab.log;
    });
    expect(log.at('warn')).toContain(texts.usage_not_saved);
  });
});

it('names the option to check when /sys cannot be read', async () => {
  const lab = hubLab({ configured: ['links'] });
  void lab.run(links, 'links', { options: { roots: { proc: '/proc', sys: '/nowhere' } } });
  await eventually('it is down', () => lab.hub.drivers()[0]?.state === 'down');
  expect(lab.hub.drivers()[0]?.reason).toBe('/nowhere/class/net cannot be read; check options.roots.sys');
  await lab.stop();
});

it('reads routes and addresses of this machine over netlink', async () => {
  const lab = hubLab({ configured: ['links'] });
  void lab.run(links, 'links');
  await lab.outbox.until((draft) => kitTelemetry.safeParse(draft.data).data?.wans !== undefined);
  expect(lab.hub.drivers()[0]?.facts).toMatchObject({ routes: 'netlink' });
  await lab.stop();
});

it.each([
  [{ ignore: ['eth0'], wan: { eth0: {} } }, /remove it from one of them/u],
  [{ probe: { targets: ['1.1.1.1'] } }, /at least two targets/u],
  [{ probe: { targets: ['one.one.one.one', '1.1.1.1'] } }, /targets/u],
  [{ usage: { zone: 'Mars/Olympus' } }, /time zone such as/u],
  [{ usage: { month_starts_on: 32 } }, /month_starts_on/u],
])('refuses the options %j', (wrong, words) => {
  expect(() => links.configure(wrong)).toThrow(words);
});
