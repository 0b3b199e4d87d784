/** Which interfaces are WAN links and of which type, on fake machines with every odd interface that was met. */
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  isTunnel,
  typeByName,
  typeOf,
  findWans,
  former_max,
  type Wan,
  readPppoe,
} from '../../../../drivers/links/interfaces/inventory.ts';
import { procRouting } from '../../../../drivers/links/routes/route-source.ts';
import {
  failoverOrder,
  routedInterfaces,
  selectedInterfaces,
} from '../../../../drivers/links/routes/routing.ts';
import { Interfaces } from '../../../../drivers/links/interfaces/sysfs.ts';
import { texts } from '../../../../drivers/links/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { fakeMachine, type FakeMachine } from '../../../support/gateway/fake-machine.ts';

let machine: FakeMachine;
let next_ifindex = 2;
beforeEach(async () => {
  machine = await fakeMachine();
});
afterEach(async () => machine.remove());

/** An interface with an index of its own; its name is what tests look at. */
const add = async (name: string, more: Partial<Parameters<FakeMachine['setInterface']>[0]> = {}) =>
  machine.setInterface({ name, ifindex: (next_ifindex += 1), ...more });

function find(
  more: { configured?: string[]; ignored?: string[]; remembered?: string[] } = {},
): readonly Wan[] {
  return findAll(more).wans;
}

function findAll(more: Parameters<typeof find>[0] = {}) {
  const interfaces = new Interfaces(machine.roots.sys, recordingLog());
  const natures = interfaces.natures() ?? new Map<string, never>();
  const routing = procRouting(machine.roots.proc, (name) => natures.get(name)?.ifindex, null);
  const stateOf = (name: string) => interfaces.state(name);
  return findWans({
    natures,
    stateOf,
    routed: routedInterfaces(routing, []),
    order: failoverOrder(
      routing,
      () => false,
      selectedInterfaces(routing, () => false, []),
    ),
    pppoe: readPppoe(machine.roots.proc, natures, stateOf),
    configured: [],
    ignored: [],
    remembered: [],
    ...more,
  });
}
const names = (wans: readonly Wan[]) => wans.map(({ name }) => name).sort();
function types() {
  const interfaces = new Interfaces(machine.roots.sys, recordingLog());
  const natures = interfaces.natures() ?? new Map<string, never>();
  const { links } = readPppoe(machine.roots.proc, natures, (name) => interfaces.state(name));
  return Object.fromEntries([...natures].map(([name, nature]) => [name, typeOf(nature, links)]));
}
const pppoeSession = async (device: string) =>
  machine.write(
    'proc/net/pppoe',
    `Id       Address              Device\n00000001 02:00:00:00:00:09     ${device}\n`,
  );

it('derives the type of a link from the kernel, and from its name last', async () => {
  await add('eth0', { driver: 'igb' });
  await add('wwan0', { devtype: 'wwan', type: 65_534 });
  await add('usb7', { driver: 'rndis_host' });
  await add('wlan0', { devtype: 'wlan' });
  await add('radio0', { wireless: true });
  await add('rmnet0', { type: 519 });
  await add('dsl', { type: 512, hardware: false });
  await add('usb0', { driver: 'cdc_ether' });
  expect(types()).toEqual({
    dsl: 'cellular',
    eth0: 'ethernet',
    radio0: 'wifi',
    rmnet0: 'cellular',
    usb0: 'cellular',
    usb7: 'cellular',
    wlan0: 'wifi',
    wwan0: 'cellular',
  });
  expect(['wlp2s0', 'ppp3', 'enp1s0'].map(typeByName)).toEqual(['wifi', 'cellular', 'ethernet']);
});

it('lists what a default route leads through, and a modem also without one', async () => {
  await add('eth0');
  await add('eth1');
  await add('wlan0', { devtype: 'wlan' });
  await add('wwan0', { devtype: 'wwan', type: 65_534 });
  await machine.setRoutes([{ device: 'eth1', metric: 100 }]);
  expect(names(find())).toEqual(['eth1', 'wwan0']);
});

it('leaves out loopback, containers, bridges and their members, access points, tunnels and CAN', async () => {
  await add('lo', { hardware: false, type: 772 });
  await add('docker0', { hardware: false, devtype: 'bridge' });
  await add('veth12ab', { hardware: false });
  await add('lan1', { master: 'br-lan' });
  await add('wlan1', { devtype: 'wlan', master: 'br-lan' });
  await add('br-lan', { hardware: false, devtype: 'bridge' });
  await add('can0', { type: 280 });
  await add('wg0', { hardware: false, devtype: 'wireguard', type: 65_534 });
  await add('tun0', { hardware: false, type: 65_534, tun: true });
  await machine.setRoutes([{ device: 'tun0' }, { device: 'wg0' }, { device: 'lan1' }, { device: 'lo' }]);
  expect(find()).toEqual([]);
});

it('follows a tunnel to its link, but not a TAP device of a lab or a container', async () => {
  await add('tun0', { hardware: false, type: 65_534, tun: true });
  await add('tap0', { hardware: false, tun: true });
  const natures = [...(new Interfaces(machine.roots.sys, recordingLog()).natures() ?? [])];
  const tunnels = natures.filter(([, nature]) => isTunnel(nature));
  expect(tunnels.map(([name]) => name)).toEqual(['tun0']);
});

it('lists configured links, present or not, and never ignored ones', async () => {
  await add('eth0');
  await add('lan1', { master: 'br-lan' });
  await machine.setRoutes([{ device: 'eth0' }]);
  const wans = find({ configured: ['lan1', 'ppp9'], ignored: ['eth0'] });
  expect(names(wans)).toEqual(['lan1', 'ppp9']);
  expect(wans.find(({ name }) => name === 'ppp9')?.present).toBeNull();
});

it('keeps a link that has vanished or lost its route, until it is made a port of the LAN', async () => {
  await add('eth0');
  const remembered = ['eth0', 'usb0'];
  expect(names(find({ remembered }))).toEqual(['eth0', 'usb0']);
  await add('eth0', { master: 'br-lan' });
  expect(names(find({ remembered }))).toEqual(['usb0']);
});

it('lists the former links that were seen last, however many there were, and those in use beside them', async () => {
  await add('eth0');
  await machine.setRoutes([{ device: 'eth0' }]);
  const remembered = Array.from({ length: 200 }, (_none, index) => `ppp${index}`);
  const { wans, left_out } = findAll({ remembered: [...remembered, 'eth0'], configured: ['wwan0'] });
  expect(wans.map(({ name }) => name)).toEqual(['wwan0', 'eth0', ...remembered.slice(0, former_max)]);
  expect(left_out).toEqual([]);
});

it('lists a VLAN or PPPoE instead of the port below it, so that no byte is counted twice', async () => {
  await add('eth1');
  await add('eth1.35', { hardware: false, devtype: 'vlan', lowers: ['eth1'] });
  await add('eth2');
  await add('ppp0', { hardware: false, type: 512 });
  await pppoeSession('eth2');
  await machine.setRoutes([{ device: 'eth1.35' }, { device: 'ppp0', metric: 5 }]);
  expect(names(find({ remembered: ['eth1', 'eth2'] }))).toEqual(['eth1.35', 'ppp0']);
  const both = find({ configured: ['eth1', 'eth2'] });
  const counted = Object.fromEntries(both.map(({ name, counted_on }) => [name, counted_on]));
  expect(counted).toEqual({ eth1: 'eth1.35', eth2: 'ppp0', 'eth1.35': null, ppp0: null });
});

it.each([
  { line: 'ppp1', modem: 'ppp0', mtu: 1_492 },
  { line: 'pppoe-wan', modem: '3g-wan2', mtu: 1_500 },
])('distinguishes $line over Ethernet from $modem of a modem', async ({ line, modem, mtu }) => {
  await add('eth2');
  await add(modem, { hardware: false, type: 512, mtu: 1_500 });
  await add(line, { hardware: false, type: 512, mtu });
  await pppoeSession('eth2');
  await machine.setRoutes([{ device: modem }, { device: line, metric: 5 }]);
  expect(types()).toMatchObject({ [modem]: 'cellular', [line]: 'ethernet' });
  const counted = find({ configured: ['eth2'] }).find(({ name }) => name === 'eth2');
  expect(counted?.counted_on).toBe(line);
});

it('lists an uplink in a VRF, and no port of a bond', async () => {
  await add('tenant', { hardware: false, flags: '0x4c1' });
  await add('eth3', { master: 'tenant' });
  await add('bond0', { hardware: false, flags: '0x1443' });
  await add('eth4', { master: 'bond0' });
  await machine.setRoutes([{ device: 'eth3' }, { device: 'eth4' }]);
  expect(names(find())).toEqual(['eth3']);
});

it('lists those in use first where there are more than fit, and names the others', async () => {
  for (let index = 0; index < 40; index += 1) await add(`eth${index}`);
  await machine.setRoutes(
    Array.from({ length: 40 }, (_, index) => ({ device: `eth${index}`, metric: 40 - index })),
  );
  const { wans, left_out } = findAll();
  expect(wans.map(({ name }) => name).slice(0, 2)).toEqual(['eth39', 'eth38']);
  expect(wans).toHaveLength(32);
  expect(left_out).toEqual(['eth7', 'eth6', 'eth5', 'eth4', 'eth3', 'eth2', 'eth1', 'eth0']);
});

it('treats any name as data', async () => {
  const odd = ['constructor', '__proto__', '🚁;reboot', '$(id)', '-rf'];
  for (const name of odd) await add(name);
  await machine.setRoutes(odd.map((device) => ({ device })));
  expect(names(find())).toEqual(odd.sort());
});

it('reads an interface that is down, whose carrier the kernel does not report', async () => {
  await add('eth0', { carrier: undefined, flags: '0x1002', operstate: 'down' });
  expect(new Interfaces(machine.roots.sys, recordingLog()).state('eth0')).toMatchObject({
    isUp: false,
    carrier: undefined,
  });
});

it('treats an interface as new when its index has changed', async () => {
  const interfaces = new Interfaces(machine.roots.sys, recordingLog());
  await add('usb0', { driver: 'rndis_host' });
  expect(interfaces.natures()?.get('usb0')?.driver).toBe('rndis_host');
  await add('usb0', { driver: 'cdc_ncm' });
  expect(interfaces.natures()?.get('usb0')?.driver).toBe('cdc_ncm');
});

it('logs once that an interface whose name is not UTF-8 is not listed, and lists the others', async () => {
  const log = recordingLog();
  const interfaces = new Interfaces(machine.roots.sys, log);
  await add('eth0');
  await add('\u{1F4E1}');
  const strange = Buffer.concat([
    Buffer.from(`${join(machine.roots.sys, 'class/net')}/wan`),
    Buffer.from([0xff]),
  ]);
  await mkdir(strange);
  const told = () => log.at('warn');
  for (let reading = 0; reading < 3; reading += 1) {
    expect([...(interfaces.natures()?.keys() ?? [])].sort()).toEqual(['eth0', '\u{1F4E1}']);
  }
  expect(told()).toEqual([texts.name_not_utf8]);
  await rmdir(strange);
  interfaces.natures();
  await mkdir(strange);
  interfaces.natures();
  expect(told()).toHaveLength(2);
});

it('reads the main table of both families from /proc', async () => {
  await machine.setRoutes([{ device: 'eth0', metric: 100 }]);
  const any = '0'.repeat(32);
  const reject = `${any} 00 ${any} 00 ${any} ffffffff 00000001 00000000 00200200       lo`;
  const real = `${any} 00 ${any} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth1`;
  await machine.write('proc/net/ipv6_route', `${real}\n${reject}\n`);
  const { routes } = procRouting(machine.roots.proc, (name) => ({ eth0: 2, eth1: 3 })[name], null);
  expect(routes).toMatchObject([
    { family: 4, metric: 100, paths: [{ ifindex: 2 }] },
    { family: 6, metric: 1_024, paths: [{ ifindex: 3 }] },
    { family: 6, metric: 0xff_ff_ff_ff, paths: [] },
  ]);
});

it('lists a multiplexed modem once, by the interface that carries its connection', async () => {
  await add('wwan0', { devtype: 'wwan', type: 519 });
  await add('qmapmux0.0', { type: 519, hardware: false, lowers: ['wwan0'] });
  await add('mhi_hwip0', { driver: 'mhi_net', type: 519 });
  await add('mhi_swip0', { driver: 'mhi_net', type: 519 });
  await add('mhi_swip1', { driver: 'mhi_net', type: 519 });
  expect(names(find())).toEqual(['mhi_hwip0', 'mhi_swip1', 'wwan0']);
  await machine.setRoutes([{ device: 'qmapmux0.0' }, { device: 'mhi_swip0' }]);
  expect(names(find())).toEqual(['mhi_hwip0', 'mhi_swip0', 'mhi_swip1', 'qmapmux0.0']);
  expect(names(find({ configured: ['wwan0'] }))).toContain('wwan0');
  await machine.setRoutes([{ device: 'qmapmux0.0' }, { device: 'wwan0' }]);
  expect(names(find())).toEqual(['mhi_hwip0', 'mhi_swip1', 'qmapmux0.0', 'wwan0']);
});
