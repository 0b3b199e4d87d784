/**
 * Every driver whose device is absent, refuses the connector, serves another protocol or hangs: doctor and status name the
 * device, what was tried, the fault, the remedy and the next attempt.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clients } from '../../../../drivers/clients/clients.ts';
import { drivers } from '../../../../drivers/index.ts';
import { location } from '../../../../drivers/location/location.ts';
import { mavlink } from '../../../../drivers/mavlink/mavlink.ts';
import { modem } from '../../../../drivers/modem/modem.ts';
import { onvif } from '../../../../drivers/onvif/onvif.ts';
import { power } from '../../../../drivers/power/power.ts';
import { starlink } from '../../../../drivers/starlink/starlink.ts';
import { vendorcamWith } from '../../../../drivers/vendorcam/vendorcam.ts';
import { vendorradioWith } from '../../../../drivers/vendorradio/vendorradio.ts';
import { halves, kitFindings } from '../../../../src/cli/doctor/kit.ts';
import { statusLines } from '../../../../src/cli/status/view.ts';
import type { Driver } from '../../../../src/toolkit/driver/driver.ts';
import { startFakeDish } from '../../../fakes/fake-dish.ts';
import { startFakeModemManager } from '../../../fakes/services/fake-modem-manager.ts';
import { startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { startFakeUpsd } from '../../../fakes/services/fake-upsd.ts';
import { FakeVendorCamera } from '../../../fakes/fake-vendor-camera.ts';
import { quick_limits as camera_limits } from '../../../support/cameras/vendorcam-lab.ts';
import { startForeignPeer } from '../../../support/drivers/foreign-peer.ts';
import { makeMessageBus } from '../../../support/drivers/message-bus.ts';
import { quick_limits as radio_limits } from '../../../support/drivers/vendorradio-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { peerMissing } from '../../../support/peers.ts';
import { freePort } from '../../../support/ports.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { statusOf } from '../../kit/local/fake-daemon.ts';

interface Place {
  readonly port: number;
  /** Of a local socket or a serial port. */
  readonly path: string;
}

interface Peer {
  readonly place: Partial<Place>;
  readonly stop: () => Promise<void>;
}

const manners = ['absent', 'refuses', 'rubbish', 'hangs'] as const;
type Manner = (typeof manners)[number];

/** `isOpen`: nothing is tried again, since the connection stands. */
type Said = readonly [fault: RegExp, remedy: RegExp, isOpen?: true];

interface Row {
  readonly title: string;
  readonly driver: Driver;
  /** What the doctor calls it. */
  readonly what: string;
  readonly options: (place: Place, secret_file: string) => object;
  /** A real device of this kind that refuses. */
  readonly refusing?: () => Promise<Peer>;
  /** The fault and the remedy; undefined: it does not apply, for the reason in `without`. */
  readonly said: Readonly<Record<Manner, Said | undefined>>;
  readonly without?: string;
}

const host = '127.0.0.1';
const radios = vendorradioWith(radio_limits);
const power_remedy = /^check its power, its cable and its address; next/u;
const silent = /does not answer|no complete answer/u;

const rows: readonly Row[] = [
  {
    title: 'onvif',
    driver: onvif,
    what: 'device gate of onvif',
    options: ({ port }, password_file) => ({
      cameras: [{ name: 'gate', host, port, username: 'kit', password_file }],
    }),
    refusing: async () => {
      const camera = await startFakeCamera({ auth: 'ws_security' });
      return { place: camera, stop: async () => camera.stop() };
    },
    said: {
      absent: [/refuses the connection/u, /that ONVIF is switched on/u],
      refuses: [/Sender not authorized/u, /correct/u],
      rubbish: [/not HTTP/u, /check port/u],
      hangs: [silent, power_remedy],
    },
  },
  {
    title: 'vendorcam',
    driver: vendorcamWith(camera_limits),
    what: 'device gate of vendorcam',
    options: ({ port }, password_file) => ({
      hosts: [{ name: 'gate', host, port, tls: false, password_file }],
    }),
    refusing: async () => {
      const camera = new FakeVendorCamera();
      await camera.start();
      return { place: camera, stop: async () => camera.stop() };
    },
    said: {
      absent: [/refuses the connection/u, /check port/u],
      refuses: [/password/u, /correct/u],
      rubbish: [/not HTTP/u, /check port/u],
      hangs: [silent, power_remedy],
    },
  },
  {
    title: 'vendorradio by ubus',
    driver: radios,
    what: 'device mast of vendorradio',
    options: ({ port }, password_file) => ({
      radios: [{ kind: 'ubus', name: 'mast', host, port, tls: false, username: 'kit', password_file }],
    }),
    refusing: async () => {
      const radio = new FakeRadio({ user: { name: 'kit', password: 'another' } });
      await radio.start();
      return { place: radio, stop: async () => radio.stop() };
    },
    said: {
      absent: [/refuses the connection/u, /web server runs/u],
      refuses: [/password|login/u, /correct/u],
      rubbish: [/not HTTP/u, /check port/u],
      hangs: [silent, power_remedy],
    },
  },
  {
    title: 'vendorradio by SNMP',
    driver: radios,
    what: 'device mast of vendorradio',
    options: ({ port }, community_file) => ({
      radios: [{ kind: 'snmp', version: '2c', name: 'mast', host, port, community_file }],
    }),
    said: {
      absent: [silent, /community/u],
      refuses: undefined,
      rubbish: [/not SNMP/u, /check port/u],
      hangs: [silent, /community/u],
    },
    without: 'an agent is silent where the community is wrong',
  },
  {
    title: 'location',
    driver: location,
    what: 'driver location',
    options: ({ port }) => ({ gpsd: { port } }),
    said: {
      absent: [/refuses the connection/u, /check that gpsd runs/u],
      refuses: undefined,
      rubbish: [/not gpsd/u, /check its address and port/u],
      hangs: [/no greeting/u, /check that gpsd runs/u],
    },
    without: 'gpsd has no login',
  },
  {
    title: 'power',
    driver: power,
    what: 'driver power',
    options: ({ port }, password_file) => ({ nut: { port, username: 'kit', password_file } }),
    refusing: async () => {
      const upsd = await startFakeUpsd();
      upsd.password = 'another';
      return { place: upsd, stop: async () => upsd.lose() };
    },
    said: {
      absent: [/refuses the connection/u, /check that upsd runs/u],
      refuses: [/ACCESS-DENIED/u, /check options.nut.username and the password/u],
      rubbish: [/not upsd/u, /check its address and port/u],
      hangs: [/does not answer within 5 s/u, /check that upsd runs/u],
    },
  },
  {
    title: 'starlink',
    driver: starlink,
    what: 'driver starlink',
    options: ({ port }) => ({ host, port, web_port: port, link: 'lo', bind: false, timeout_s: 1 }),
    refusing: async () => {
      const dish = await startFakeDish();
      dish.state.mood = 'failing';
      return { place: dish, stop: async () => dish.lose() };
    },
    said: {
      absent: [/refuses the connection/u, /check host and port/u],
      refuses: [/refused the status request: out of order/u, /check power, cable/u],
      rubbish: [/not gRPC/u, /check host and port/u],
      hangs: [/does not answer within 1 s/u, /check power, cable/u],
    },
  },
  {
    title: 'mavlink over TCP',
    driver: mavlink,
    what: 'device field of mavlink',
    options: ({ port }) => ({ links: [{ kind: 'tcp_client', name: 'field', host, port }] }),
    said: {
      absent: [/refuses the connection/u, /check that the other side listens/u],
      refuses: undefined,
      rubbish: [/not MAVLink/u, /check the address/u, true],
      hangs: undefined,
    },
    without:
      'a vehicle does not refuse a station; a router without vehicles is silent, for up to a minute it is no fault',
  },
  {
    title: 'mavlink over a serial port',
    driver: mavlink,
    what: 'device field of mavlink',
    options: ({ path }) => ({ links: [{ kind: 'serial', name: 'field', path, baud: [57_600] }] }),
    said: {
      absent: [/no such device/u, /plug/u],
      refuses: undefined,
      rubbish: undefined,
      hangs: undefined,
    },
    without: 'a serial port needs a terminal: see the tests of serial links',
  },
  {
    title: 'clients',
    driver: clients,
    what: 'driver clients',
    options: () => ({ interfaces: ['nosuch0'] }),
    said: {
      absent: [/nosuch0 not found/u, /options.interfaces/u],
      refuses: undefined,
      rubbish: undefined,
      hangs: undefined,
    },
    without: 'it reads tables of the kernel',
  },
  {
    title: 'modem',
    driver: modem,
    what: 'driver modem',
    options: ({ path }) => ({ bus: `unix:path=${path}`, timeout_s: 1 }),
    refusing: async () => {
      const bus = await makeMessageBus();
      await bus.start();
      const manager = await startFakeModemManager(bus.address);
      manager.mood = 'refusing';
      const path = bus.address.replace('unix:path=', '');
      const stop = async (): Promise<void> => {
        manager.stop();
        await bus.stop();
      };
      return { place: { path }, stop };
    },
    said: {
      absent: [/no such socket/u, /check that dbus-daemon runs/u],
      refuses: [/ModemManager does not list its modems/u, /polkit|check power/u],
      rubbish: [/not D-Bus/u, /check the option bus/u],
      hangs: [/did not answer Hello in time/u, /check that it runs/u],
    },
  },
];

/** The daemon with this driver alone. */
async function withDriver<T>(
  { driver, options, what }: Row,
  place: Partial<Place>,
  dir: string,
  fn: (report: () => Shown) => Promise<T>,
): Promise<T> {
  const file = join(dir, 'secret');
  await writeFile(file, 'secret\n', { mode: 0o600 });
  const lab = hubLab({ state_dir: join(dir, 'state'), configured: [driver.name] });
  const at = { port: place.port ?? (await freePort()), path: place.path ?? join(dir, 'none') };
  void lab.run(driver, driver.name, { options: options(at, file) });
  try {
    return await fn(() => reportOf(lab, what));
  } finally {
    await lab.stop();
  }
}

type Shown = ReturnType<typeof reportOf>;

function reportOf({ hub }: ReturnType<typeof hubLab>, what: string) {
  const drivers_now = hub.drivers().map(({ devices = [], ...view }) => ({
    ...view,
    devices: devices.map(({ weakness: _weakness, ...device }) => device),
  }));
  const status = statusOf({ drivers: drivers_now, assets: [] });
  const [view] = drivers_now;
  return {
    finding: kitFindings(status, []).find((each) => each.what === what && each.level !== 'ok'),
    /** What the driver, or its device, reports. */
    fact: view?.devices[0] ?? view,
    text: statusLines(status, (_colour, text) => text, undefined).join('\n'),
  };
}

/** What doctor and status show once the driver has failed to reach the device. */
async function shown(row: Row, place: Partial<Place>, dir: string): Promise<Shown> {
  return withDriver(row, place, dir, async (report) => {
    await eventually('it has failed', () => typeof report().fact?.reason === 'string');
    return report();
  });
}

/** Drivers that reach for no device. */
const without_device = {
  gateway: 'it reads the machine that it runs on',
  links: 'a link is no device: its reason stands in the list of links',
  speedtest: 'it connects on command only, and the command ends with the reason',
};

it('covers every driver', () => {
  const covered = new Set([...rows.map(({ driver }) => driver.name), ...Object.keys(without_device)]);
  expect(covered).toEqual(new Set(drivers.map(({ name }) => name)));
});

describe.each(manners)('a device that is: %s', (manner) => {
  const applying = rows.filter(({ said }) => said[manner] !== undefined);

  it.concurrent.for(applying)(
    'is named by doctor and status: $title',
    async (row, { skip, onTestFinished }) => {
      skip(row.driver === modem && peerMissing('dbus-daemon'), 'dbus-daemon is not installed');
      const dir = await makeDirectory();
      const [fault, remedy, isOpen] = row.said[manner] ?? [/^$/u, /^$/u];
      const peer = await peerOf(row, manner, dir);
      onTestFinished(async () => peer.stop());
      const { finding, fact, text } = await shown(row, peer.place, dir);
      const [answer, own_remedy = answer] = halves(String(fact?.reason));
      expect(finding?.finding).toMatch(fault);
      expect(finding?.finding).toContain(answer);
      expect(finding?.remedy).toMatch(remedy);
      expect(text).toContain(answer);
      expect(text).toContain(own_remedy);
      expect(fact?.next_try_at === null).toBe(isOpen === true);
      expect(/; next attempt at (?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d$/u.test(String(finding?.remedy))).toBe(
        isOpen !== true,
      );
    },
  );
});

async function peerOf({ refusing }: Row, manner: Manner, dir: string): Promise<Peer> {
  if (manner === 'absent') return { place: {}, stop: async () => Promise.resolve() };
  if (manner === 'refuses') {
    if (!refusing) throw new Error('the row has no device that refuses');
    return refusing();
  }
  const peer = await startForeignPeer(dir, manner);
  return { place: peer, stop: async () => peer.stop() };
}
