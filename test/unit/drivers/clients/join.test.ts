/** Who counts as a client of the kit, by which name and address, and over which medium. */
import { describe, expect, it } from 'vitest';
import { joinClients, type LanLink, mostOf, type Sources } from '../../../../drivers/clients/clients.ts';
import type { Neighbour } from '../../../../src/platform/linux/arp-table.ts';

const rules = { present_s: 300, names: true };
const bridge: LanLink = { name: 'br-lan', ifindex: 6, medium: null, stations: new Map() };

function neighbour(more: Partial<Neighbour> = {}): Neighbour {
  const base = { ifindex: 6, ip: '192.168.7.50', mac: '02:00:00:00:00:11' } as const;
  return { ...base, state: 'reachable', confirmed_s: 1, ...more };
}

function joined(more: Partial<Sources> = {}, changed: Partial<typeof rules> = {}) {
  const lan = { links: [bridge], own_macs: new Set<string>() };
  const sources = { lan, neighbours: [], leases: [], own_ips: new Set<string>(), ...more };
  return joinClients(sources, { ...rules, ...changed });
}

it('joins a neighbour, its lease and its port by MAC address', () => {
  const stations = new Map([['02:00:00:00:00:11', { medium: 'wireless', age_s: 3 }]] as const);
  const leases = [{ mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: 'tablet' }];
  const lan = { links: [{ ...bridge, stations }], own_macs: new Set<string>() };
  expect(joined({ lan, neighbours: [neighbour()], leases })).toEqual([
    { mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: 'tablet', type: 'wireless' },
  ]);
});

describe('presence', () => {
  it.each<[string, Partial<Neighbour>, boolean]>([
    ['answers', { state: 'reachable', confirmed_s: 9_999 }, true],
    ['was there a moment ago', { state: 'unsure', confirmed_s: 299 }, true],
    ['was there long ago', { state: 'unsure', confirmed_s: 301 }, false],
    ['was written down by hand', { state: 'permanent', confirmed_s: 1 }, false],
    ['is on the WAN side', { ifindex: 2 }, false],
    ['is a group of devices', { mac: '33:33:00:00:00:01' }, false],
    ['has no address', { mac: '00:00:00:00:00:00' }, false],
  ])('of a device that %s', (_, more, isThere) => {
    expect(joined({ neighbours: [neighbour(more)] })).toHaveLength(isThere ? 1 : 0);
  });

  it('is not shown by a lease alone, which outlives its device', () => {
    expect(joined({ leases: [{ mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: 'x' }] })).toEqual([]);
  });

  it('is proved by a frame that the bridge has seen, and the lease gives the address', () => {
    const stations = (age_s: number) => ({
      links: [{ ...bridge, stations: new Map([['02:00:00:00:00:11', { medium: 'wired', age_s }]] as const) }],
      own_macs: new Set<string>(),
    });
    const leases = [{ mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: null }];
    expect(joined({ lan: stations(10), leases })).toEqual([
      { mac: '02:00:00:00:00:11', ip: '192.168.7.50', name: null, type: 'wired' },
    ]);
    expect(joined({ lan: stations(301), leases })).toEqual([]);
  });

  it('does not count the gateway itself, by MAC or by address', () => {
    const lan = { links: [bridge], own_macs: new Set(['02:00:00:00:00:11']) };
    expect(joined({ lan, neighbours: [neighbour()] })).toEqual([]);
    expect(joined({ own_ips: new Set(['192.168.7.50']), neighbours: [neighbour()] })).toEqual([]);
  });
});

it('shows a device with several addresses once, with the IPv4 address that was confirmed last', () => {
  const neighbours = [
    neighbour({ ip: 'fe80::1', confirmed_s: 0 }),
    neighbour({ ip: 'fd00::5', confirmed_s: 0 }),
    neighbour({ ip: '192.168.7.50', state: 'unsure', confirmed_s: 50 }),
    neighbour({ ip: '192.168.7.60', state: 'unsure', confirmed_s: 20 }),
  ];
  expect(joined({ neighbours }).map(({ ip }) => ip)).toEqual(['192.168.7.60']);
  expect(joined({ neighbours: neighbours.slice(0, 2) }).map(({ ip }) => ip)).toEqual(['fd00::5']);
});

it('names a device by its IPv6 lease when there is no other, and by none when names stay on the kit', () => {
  const neighbours = [neighbour({ ip: 'fd00::5' })];
  const leases = [{ mac: null, ip: 'fd00::5', name: 'laptop' }];
  expect(joined({ neighbours, leases })[0]?.name).toBe('laptop');
  expect(joined({ neighbours, leases }, { names: false })[0]?.name).toBeNull();
});

describe('many addresses, which one host can make up', () => {
  const macOf = (n: number): string => `06:00:00:00:${hex(n >> 8)}:${hex(n & 0xff)}`;
  const hex = (byte: number): string => byte.toString(16).padStart(2, '0');

  it('cost a look at each lease, and not one for each of them', () => {
    const count = 2_000;
    const macs = Array.from({ length: count }, (_, n) => macOf(n));
    const stations = new Map(macs.map((mac) => [mac, { medium: 'wired', age_s: 1 }] as const));
    let looks = 0;
    const leases = new Proxy(
      macs.map((mac) => ({ mac, ip: '192.168.7.50', name: null })),
      {
        get(all, key, of): unknown {
          looks += 1;
          return Reflect.get(all, key, of);
        },
      },
    );
    const lan = { links: [{ ...bridge, stations }], own_macs: new Set<string>() };
    expect(joined({ lan, leases })).toHaveLength(count);
    expect(looks).toBeLessThan(10 * count);
  });

  it('leave devices with an address in a list that is too long for all', () => {
    const client = (mac: string, ip: string | null) => ({ mac, ip, name: null, type: null });
    const invented = Array.from({ length: 300 }, (_, n) => client(macOf(n), null));
    const real = [client('0a:00:00:00:00:01', '10.0.0.1'), client('0a:00:00:00:00:02', '10.0.0.2')];
    const most = mostOf([...invented, ...real], 256);
    expect(most).toHaveLength(256);
    expect(most.slice(-2)).toEqual(real);
    expect(most[0]).toEqual(invented[0]);
    expect(mostOf(real, 2)).toEqual(real);
  });
});
