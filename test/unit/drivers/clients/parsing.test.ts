/** Lease files, bridge tables and neighbour dumps, with the oddities that real ones have. */
import { uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cleanName,
  parseForwarding,
  parseLeases,
  strangers_max,
} from '../../../../drivers/clients/clients.ts';
import { decodeNeighbour } from '../../../../src/platform/linux/arp-table.ts';
import { readMessages } from '../../../../src/platform/linux/netlink.ts';
import { forAll } from '../../../support/for-all.ts';

describe('the lease file of dnsmasq', () => {
  it('reads IPv4 leases, names that are unknown, and IPv6 leases after the line of the server', () => {
    const text = [
      '1795270000 02:00:00:00:00:11 192.168.7.50 tablet 01:02:00:00:00:00:11',
      '1795270000 AA:BB:CC:DD:EE:FF 192.168.7.51 * *',
      'duid 00:01:00:01:2c:aa:bb:cc:02:00:00:00:00:01',
      '1795270000 12345678 fd00::50 laptop 00:01:00:01:2c:aa:bb:cd:02:00:00:00:00:12',
      '1795270000 T12345678 fd00::51 * 00:01',
    ].join('\n');
    expect(parseLeases(text)).toEqual([
      { mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: 'tablet' },
      { mac: 'aa:bb:cc:dd:ee:ff', ip: '192.168.7.51', name: null },
      { mac: null, ip: 'fd00::50', name: 'laptop' },
      { mac: null, ip: 'fd00::51', name: null },
    ]);
  });

  it.each([
    ['that never ends', '0'],
    ['counted in seconds by a machine without a clock', '43199'],
    ['of a clock that stood in 1970', '7200'],
  ])('takes a lease %s', (_, expiry) => {
    const [lease] = parseLeases(`${expiry} 02:00:00:00:00:11 192.168.7.50 tablet *\n`);
    expect(lease).toMatchObject({ name: 'tablet' });
  });

  it('reads a line that names the type of the hardware, and one without a client id', () => {
    expect(parseLeases('9 06-02:00:00:00:00:11 192.168.7.50 tablet')).toMatchObject([
      { mac: '02:00:00:00:00:11' },
    ]);
  });

  it('skips what is no lease, and reads the others', () => {
    const text = `\n# note\n9 nonsense 10.0.0.1 x *\n9 02:00:00:00:00:11 10.0.0.999 x *\n9 02:00:00:00:00:12`;
    expect(parseLeases(`${text}\n9 02:00:00:00:00:13 10.0.0.3 y *\n9 02:00:00`)).toEqual([
      { mac: '02:00:00:00:00:13', ip: '10.0.0.3', name: 'y' },
    ]);
  });

  it('reads no further than its lines can be leases, whatever a file of the largest size holds', () => {
    const lease = '9 02:00:00:00:00:13 10.0.0.3 y *\n';
    expect(parseLeases(`${'\n'.repeat(8_000)}${lease}`)).toHaveLength(1);
    expect(parseLeases(`${'\n'.repeat(1_000_000)}${lease}`)).toEqual([]);
  });

  it.each([
    ['te\u0000le\u001b[31mfon', 'tele[31mfon'],
    ['a\u202Egnp.exe', 'agnp.exe'],
    ['x'.repeat(80), 'x'.repeat(63)],
    ['*', null],
    ['\u0007', null],
  ])('cleans the name %j', (name, clean) => {
    expect(cleanName(name)).toBe(clean);
  });
});

describe('the table of a bridge', () => {
  const entry = (mac: readonly number[], { port = 1, local = 0, age = 0, high = 0 } = {}): Buffer => {
    const bytes = Buffer.alloc(16);
    bytes.set([...mac, port, local], 0);
    bytes.writeUInt32LE(age, 8);
    bytes.writeUInt8(high, 12);
    return bytes;
  };

  it('tells the port and the age of each address, not the own ones nor those of a port that is gone', () => {
    const table = Buffer.concat([
      entry([2, 0, 0, 0, 0, 0x11], { age: 1_250 }),
      entry([2, 0, 0, 0, 0, 0x12], { port: 2 }),
      entry([2, 0, 0, 0, 0, 0x13], { local: 1 }),
      entry([2, 0, 0, 0, 0, 0x14], { port: 9 }),
      entry([2, 0, 0, 0, 0, 0x15], { port: 4, high: 1 }),
      Buffer.from([2, 0, 0]),
    ]);
    const ports = new Map([
      [1, 'wired'],
      [2, 'wireless'],
      [260, null],
    ] as const);
    expect([...parseForwarding(table, ports)]).toEqual([
      ['02:00:00:00:00:11', { medium: 'wired', age_s: 12.5 }],
      ['02:00:00:00:00:12', { medium: 'wireless', age_s: 0 }],
      ['02:00:00:00:00:15', { medium: null, age_s: 0 }],
    ]);
  });

  it('limits the addresses that a host makes up, and keeps the neighbours that the kernel knows', () => {
    const invented = Array.from({ length: 20_000 }, (_, n) => entry([6, 0, 0, 0, n >> 8, n & 0xff]));
    const known = '02:00:00:00:00:11';
    const table = Buffer.concat([...invented, entry([2, 0, 0, 0, 0, 0x11])]);
    const stations = parseForwarding(table, new Map([[1, 'wired']] as const), new Set([known]));
    expect(stations.size).toBe(strangers_max + 1);
    expect(stations.get(known)).toEqual({ medium: 'wired', age_s: 0 });
  });
});

describe('a dump of the neighbour table', () => {
  const neighboursOf = (datagram: Buffer) =>
    readMessages(datagram).flatMap(({ body }) => decodeNeighbour(body) ?? []);
  /** A message of the layout of linux/rtnetlink.h: header, ndmsg, then address, link address and ages as attributes. */
  const reachable = Buffer.from(
    [
      '4c000000 1c00 0200 01000000 00000000',
      '02000000 03000000 0200 00 01',
      '0800 0100 c0a80732',
      '0a00 0200 020000000011 0000',
      '0800 0400 01000000',
      '1400 0300 64000000 c8000000 2c010000 00000000',
    ]
      .join('')
      .replaceAll(' ', ''),
    'hex',
  );

  it('gives address, link, state and age', () => {
    expect(neighboursOf(reachable)).toEqual([
      { ifindex: 3, ip: '192.168.7.50', mac: '02:00:00:00:00:11', state: 'reachable', confirmed_s: 1 },
    ]);
  });

  it.each([0x00, 0x01, 0x20, 0x40])('leaves out a neighbour of state %i, which was not received', (state) => {
    const silent = Buffer.from(reachable);
    silent.writeUInt16LE(state, 24);
    expect(neighboursOf(silent)).toEqual([]);
  });

  it('stands any bytes', () => {
    forAll(uint8Array({ maxLength: 200 }), uint8Array({ maxLength: 40 }), (any, tail) => {
      const bytes = Buffer.concat([reachable, tail]);
      expect(neighboursOf(bytes).length).toBeGreaterThanOrEqual(1);
      expect(() => decodeNeighbour(Buffer.from(any))).not.toThrow();
    });
  });
});
