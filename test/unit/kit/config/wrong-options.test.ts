/** Wrong options of the built-in drivers: each fault names its place, its key and the remedy. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { drivers } from '../../../../drivers/index.ts';
import { readConfig } from '../../../../src/kit/config/config.ts';
import { ConfigInvalid } from '../../../../src/platform/errors.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const cases: readonly (readonly [driver: string, options: string, ...faults: readonly string[]])[] = [
  ['clients', '{ leases: /x }', 'leases: is "/x"; write a list (lines that begin with "- ")'],
  ['gateway', '{ nmae: x }', 'nmae: unknown key; did you mean "name"?'],
  [
    'links',
    '{ probe: { targets: [one.one, 9.9.9.9] } }',
    'probe.targets[0]: must be an IPv4 or IPv6 address, not a name',
  ],
  [
    'links',
    '{ probe: { targets: [7, 9.9.9.9] } }',
    'probe.targets[0]: is 7; write a text or a group of keys',
  ],
  [
    'links',
    '{ probe: { targets: [{ ip: 1.1.1.1, prot: 1 }, 9.9.9.9] } }',
    'probe.targets[0].prot: unknown key; did you mean "port"?',
  ],
  [
    'location',
    '{ manual: { latitude: 95, longitude: 18 } }',
    'manual.latitude: is 95, which is too large; write 90 or less',
  ],
  [
    'mavlink',
    '{ links: [{ port: 14550 }] }',
    'links[0].kind: is missing; add it (udp_listen, udp_client, tcp_client, tcp_listen, serial)',
  ],
  [
    'mavlink',
    '{ links: [{ kind: udp_lisen, port: 14550 }] }',
    'links[0].kind: is "udp_lisen"; did you mean "udp_listen"? (udp_listen, udp_client, tcp_client, tcp_listen, serial)',
  ],
  [
    'mavlink',
    '{ links: [{ kind: udp_listen, prot: 14550 }] }',
    'links[0].port: is missing; add it',
    'links[0].prot: unknown key; did you mean "port"?',
  ],
  // Rules about several keys are checked although a key elsewhere is wrong.
  [
    'vendorradio',
    '{ poll_s: 0, radios: [{ kind: snmp, name: a, host: h1, username: u }, { kind: snmp, name: a, host: h2, username: u, port: no }] }',
    'poll_s: is 0, which is too small; write 0.1 or more',
    'radios[1].port: is "no"; ',
    'radios: each radio needs a unique name',
  ],
  [
    'mavlink',
    '{ links: [{ kind: udp_lisen }], goto: { height_min_m: 90, height_max_m: 10 } }',
    'links[0].kind: is "udp_lisen"; did you mean "udp_listen"? (udp_listen, udp_client, tcp_client, tcp_listen, serial)',
    'goto.height_min_m: must not be above height_max_m; lower it or raise height_max_m',
  ],
  [
    'links',
    '{ interval: 3, wan: { wan0: { nmae: a } }, ignore: [wan0] }',
    'wan.wan0.nmae: unknown key',
    'interval: unknown key',
    'ignore: ',
  ],
  // A rule about the faulty key itself waits for it.
  ['location', '{ manual: 5 }', 'manual: is 5; write a group of keys'],
  ['mavlink', '{}', 'links: is missing; add it (connections to vehicles, each with a kind)'],
  ['modem', '{ bus: "tcp:host=x" }', 'bus: is "tcp:host=x", which must be unix:path='],
  [
    'onvif',
    '{ cameras: [{ name: A, host: 10.0.0.1, username: kit, password: x }] }',
    'cameras[0].password_file: is missing; add it (',
    'cameras[0].password: secrets may not stand in this file',
  ],
  [
    'onvif',
    '{ cameras: [{ name: A, host: 10.0.0.1 }], events: [{ topic: a/b, feed: moton }, { topic: a/b, feed: tamper, type: people }, { topic: a/b, feed: ai_detection, type: blurry }, { feed: none }] }',
    'events[0].feed: is "moton"; did you mean "motion"?',
    'events[1].type: belongs to no tamper, which has no types; remove it',
    'events[2].type: is none of ai_detection; write one of people, vehicle, dog_cat, face, package, line_crossing, intrusion, loitering',
    'events[3].topic: is missing; add it (the topic or its end',
  ],
  [
    'onvif',
    '{ cameras: [{ name: A, host: 10.0.0.1 }], events: [{ topic: a/b, feed: motion, camera: B }] }',
    'events[0].camera: is "B", which no camera of this driver is called; write the name of one, or remove the key',
  ],
  ['power', '{ nut: { username: x } }', 'nut: give both username and password_file, or none of them'],
  ['speedtest', '{ servers: [] }', 'servers: is empty; give it a value'],
  ['starlink', '{}', 'link: is missing; add it (name of the network interface'],
  [
    'vendorcam',
    '{ hosts: [{ name: gate, host: "http://10.0.0.1/", username: kit, password_file: /x }] }',
    'hosts[0].host: is "http://10.0.0.1/", which must be a host name or an IP address',
  ],
  [
    'vendorcam',
    '{ hosts: [{ name: gate, host: "10.0.0.1:443", username: kit, password_file: /x }] }',
    'hosts[0].host: is "10.0.0.1:443", which must be a host name or an IP address',
  ],
  [
    'onvif',
    '{ cameras: [{ name: A, host: "rtsp://kit:secret@cam/live", username: kit, password_file: x }] }',
    'cameras[0].host: is "rtsp://***@cam/live", which must be a host name or an IP address',
  ],
  [
    'location',
    '{ gpsd: { host: "127.0.0.1:2947" } }',
    'gpsd.host: is "127.0.0.1:2947", which must be a host name or an IP address',
  ],
  [
    'location',
    '{ manual: { lat: 47, longitude: 8 } }',
    'manual.latitude: is missing; add it',
    'manual.lat: unknown key; did you mean "latitude"?',
  ],
  ['location', '{ gpsd: "10.0.0.1" }', 'gpsd: is "10.0.0.1"; write a group of keys (host, port,'],
  [
    'mavlink',
    '{ links: [{ kind: serial, path: ttyUSB0 }] }',
    'links[0].path: is "ttyUSB0"; write a text that begins with "/"',
  ],
  ['vendorradio', '{ radios: [{ host: 10.0.0.1 }] }', 'radios[0].kind: is missing; add it (ubus, snmp)'],
  [
    'vendorradio',
    '{ radios: [{ kind: ubus, name: mast, hsot: 10.0.0.1, username: kit, password_file: /x }] }',
    'radios[0].host: is missing; add it',
    'radios[0].hsot: unknown key; did you mean "host"?',
  ],
];

async function faultsOf(driver: string, options: string): Promise<readonly string[]> {
  const dir = await testDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(
    file,
    `kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\ndrivers:\n  - driver: ${driver}\n    options: ${options}\n`,
  );
  try {
    await readConfig(file, { drivers, credentials_dir: undefined });
  } catch (error) {
    if (error instanceof ConfigInvalid) return error.faults;
    throw error;
  }
  return [];
}

it.each(cases)(
  '%s with the options %s is refused with the key and the remedy',
  async (driver, options, ...wanted) => {
    const found = await faultsOf(driver, options);
    expect(found).toHaveLength(wanted.length);
    for (const sentence of wanted)
      expect(found).toContainEqual(expect.stringContaining(` drivers[0].options.${sentence}`) as string);
    for (const fault of found) expect(fault).toMatch(/config\.yaml:4:\d+ /u);
  },
);

it('every built-in driver has a case', () => {
  const tried = new Set(cases.map(([driver]) => driver));
  expect(drivers.map(({ name }) => name).filter((name) => !tried.has(name))).toEqual([]);
});
