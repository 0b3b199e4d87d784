/** Interfaces, addresses and throughput of the gateway. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { link } from '../../../src/contract/kit.ts';
import { isConfigured, publicAddress } from '../../../drivers/gateway/addresses.ts';
import { readInterfaces, type WanInterface } from '../../../drivers/gateway/interfaces.ts';
import { Links } from '../../../drivers/gateway/links.ts';
import { gatewayOptions } from '../../../drivers/gateway/options.ts';
import { fakeMachine, type FakeMachine } from '../../support/fake-machine.ts';

let machine: FakeMachine;
beforeEach(async () => {
  machine = await fakeMachine();
});
afterEach(async () => machine.remove());

const read = (more: object = {}) => readInterfaces(gatewayOptions.parse({ roots: machine.roots, ...more }));
const types = (all: readonly WanInterface[]) => Object.fromEntries(all.map((each) => [each.name, each.type]));

it('tells the type of a link from the hardware, unless the options say otherwise', async () => {
  await machine.setInterface({ name: 'eth0', driver: 'igb' });
  await machine.setInterface({ name: 'eth1' });
  await machine.setInterface({ name: 'wwan0', devtype: 'wwan', type: 65_534 });
  await machine.setInterface({ name: 'usb0', driver: 'rndis_host' });
  await machine.setInterface({ name: 'wlan0', devtype: 'wlan' });
  await machine.setInterface({ name: 'wlan1', wireless: true });
  await machine.setInterface({ name: 'rmnet0', type: 519 });
  expect(types(read({ types: { eth1: 'satellite' } }))).toEqual({
    eth0: 'ethernet',
    eth1: 'satellite',
    rmnet0: 'cellular',
    usb0: 'cellular',
    wlan0: 'wifi',
    wlan1: 'wifi',
    wwan0: 'cellular',
  });
});

it('leaves out what is no hardware, what belongs to a bridge, and what carries no internet protocol', async () => {
  await machine.setInterface({ name: 'lo', hardware: false, type: 772 });
  await machine.setInterface({ name: 'docker0', hardware: false });
  await machine.setInterface({ name: 'veth12ab', hardware: false });
  await machine.setInterface({ name: 'lan1', master: 'br-lan' });
  await machine.setInterface({ name: 'can0', type: 280 });
  await machine.setInterface({ name: 'eth0' });
  await machine.setInterface({ name: 'eth1' });
  await machine.setInterface({ name: 'ppp0', hardware: false, type: 512 });
  expect(types(read())).toEqual({ eth0: 'ethernet', eth1: 'ethernet' });
  const chosen = read({ interfaces: { include: ['ppp0'], exclude: ['eth1'] } });
  expect(types(chosen)).toEqual({ eth0: 'ethernet', ppp0: 'cellular' });
});

it('takes a name as data, whatever it is', async () => {
  await machine.setInterface({ name: 'constructor' });
  await machine.setInterface({ name: '🚁;reboot' });
  expect(types(read())).toEqual({ constructor: 'ethernet', '🚁;reboot': 'ethernet' });
});

it('needs a carrier, and takes the unknown state of a modem as up', async () => {
  await machine.setInterface({ name: 'a', carrier: '0', operstate: 'down' });
  await machine.setInterface({ name: 'b', operstate: 'unknown' });
  await machine.setInterface({ name: 'c', operstate: 'dormant' });
  expect(read().map((each) => each.hasCarrier)).toEqual([false, true, false]);
});

const reading: WanInterface = {
  name: 'eth0',
  type: 'ethernet',
  ifindex: 2,
  hasCarrier: true,
  rx_bytes: 1_000,
  tx_bytes: 2_000,
};

it('computes throughput from the difference of two readings, and remembers its peak', () => {
  const links = new Links();
  const [first] = links.update([reading], undefined, 10_000);
  expect(link.parse(first)).toEqual({ name: 'eth0', type: 'ethernet', status: 'online' });
  links.update([{ ...reading, rx_bytes: 126_000, tx_bytes: 2_000 }], undefined, 12_000);
  const [third] = links.update([{ ...reading, rx_bytes: 126_125, tx_bytes: 2_250 }], undefined, 14_000);
  expect(link.parse(third)).toMatchObject({
    rx_bps: 500,
    tx_bps: 1_000,
    rx_bps_max: 500_000,
    tx_bps_max: 1_000,
  });
});

it('does not know the throughput after the counters began anew, and never reports a negative one', () => {
  const links = new Links();
  links.update([reading], undefined, 10_000);
  const [reset] = links.update([{ ...reading, rx_bytes: 10 }], undefined, 11_000);
  expect(reset).toMatchObject({ rx_bps: undefined, tx_bps: 0 });
  const [replugged] = links.update([{ ...reading, ifindex: 9, rx_bytes: 5_000 }], undefined, 12_000);
  expect(replugged).toMatchObject({ rx_bps: undefined, tx_bps: undefined });
  links.update([], undefined, 13_000);
  const [back] = links.update([{ ...reading, rx_bytes: 50_000 }], undefined, 14_000);
  expect(back).toMatchObject({ rx_bps: undefined, rx_bps_max: undefined });
});

it('is offline without a carrier or without an address that leads off the wire', () => {
  const status = (hasCarrier: boolean, addresses: readonly string[] | undefined) =>
    new Links().update([{ ...reading, hasCarrier }], new Map(addresses && [['eth0', addresses]]), 0)[0]
      ?.status;
  expect(status(true, ['10.0.0.2'])).toBe('online');
  expect(status(true, ['2001:4860::1', 'fe80::1'])).toBe('online');
  expect(status(false, ['10.0.0.2'])).toBe('offline');
  expect(status(true, ['fe80::1', '169.254.7.7'])).toBe('offline');
  expect(status(true, undefined)).toBe('offline');
});

it.each([
  [['192.168.1.2', '8.8.4.4'], '8.8.4.4'],
  [['10.1.2.3'], undefined],
  [['172.31.0.1'], undefined],
  [['172.32.0.1'], '172.32.0.1'],
  [['100.64.0.1'], undefined],
  [['100.128.0.1'], '100.128.0.1'],
  [['169.254.1.1', 'fe80::1', 'fd00::1', '2001:db8::1'], undefined],
  [['10.0.0.2', '2a00:1450::1'], '2a00:1450::1'],
  [['240.0.0.1', '224.0.0.1'], undefined],
])('of %j the public address is %s', (addresses, expected) => {
  expect(publicAddress(addresses)).toBe(expected);
});

it('takes an interface without addresses as not configured', () => {
  expect(isConfigured([])).toBe(false);
});
