import { describe, expect, it } from 'vitest';
import { isExampleIp, isPublicIp } from '../../../src/platform/public-ip.ts';
import { AddressPolicy } from '../../../src/cloud/webhooks/address-policy.ts';

/** Every block of the IANA IPv4 and IPv6 Special-Purpose Address Registries: its first and its last address. */
const registry: readonly (readonly [block: string, first: string, last: string])[] = [
  ['0.0.0.0/8, this network', '0.0.0.0', '0.255.255.255'],
  ['10.0.0.0/8, private use', '10.0.0.0', '10.255.255.255'],
  ['100.64.0.0/10, shared address space', '100.64.0.0', '100.127.255.255'],
  ['127.0.0.0/8, loopback', '127.0.0.0', '127.255.255.255'],
  ['169.254.0.0/16, link local', '169.254.0.0', '169.254.255.255'],
  ['172.16.0.0/12, private use', '172.16.0.0', '172.31.255.255'],
  ['192.0.0.0/24, IETF protocol assignments', '192.0.0.0', '192.0.0.255'],
  ['192.0.0.0/29, IPv4 service continuity', '192.0.0.1', '192.0.0.7'],
  ['192.0.0.8/32, dummy address', '192.0.0.8', '192.0.0.8'],
  ['192.0.0.9/32, PCP anycast', '192.0.0.9', '192.0.0.9'],
  ['192.0.0.10/32, TURN anycast', '192.0.0.10', '192.0.0.10'],
  ['192.0.0.170/31, NAT64 discovery', '192.0.0.170', '192.0.0.171'],
  ['192.0.2.0/24, TEST-NET-1', '192.0.2.0', '192.0.2.255'],
  ['192.31.196.0/24, AS112-v4', '192.31.196.0', '192.31.196.255'],
  ['192.52.193.0/24, AMT', '192.52.193.0', '192.52.193.255'],
  ['192.88.99.0/24, 6to4 relays', '192.88.99.0', '192.88.99.255'],
  ['192.168.0.0/16, private use', '192.168.0.0', '192.168.255.255'],
  ['192.175.48.0/24, direct delegation AS112', '192.175.48.0', '192.175.48.255'],
  ['198.18.0.0/15, benchmarking', '198.18.0.0', '198.19.255.255'],
  ['198.51.100.0/24, TEST-NET-2', '198.51.100.0', '198.51.100.255'],
  ['203.0.113.0/24, TEST-NET-3', '203.0.113.0', '203.0.113.255'],
  ['224.0.0.0/4, multicast', '224.0.0.0', '239.255.255.255'],
  ['240.0.0.0/4, reserved', '240.0.0.0', '255.255.255.254'],
  ['255.255.255.255/32, limited broadcast', '255.255.255.255', '255.255.255.255'],
  ['::/128, unspecified', '::', '::'],
  ['::1/128, loopback', '::1', '::1'],
  ['::/96, IPv4-compatible', '::2', '::ffff:ffff'],
  ['::ffff:0:0/96, IPv4-mapped', '::ffff:0:0', '::ffff:255.255.255.255'],
  ['64:ff9b::/96, translation', '64:ff9b::', '64:ff9b::ffff:ffff'],
  ['64:ff9b:1::/48, translation', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::/64, discard only', '100::', '100::ffff:ffff:ffff:ffff'],
  ['100:0:0:1::/64, dummy prefix', '100:0:0:1::', '100::1:ffff:ffff:ffff:ffff'],
  ['2001::/23, IETF protocol assignments', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001::/32, Teredo', '2001::1', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:1::1/128, PCP anycast', '2001:1::1', '2001:1::1'],
  ['2001:1::2/128, TURN anycast', '2001:1::2', '2001:1::2'],
  ['2001:1::3/128, DNS-SD anycast', '2001:1::3', '2001:1::3'],
  ['2001:2::/48, benchmarking', '2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff'],
  ['2001:3::/32, AMT', '2001:3::', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:4:112::/48, AS112-v6', '2001:4:112::', '2001:4:112:ffff:ffff:ffff:ffff:ffff'],
  ['2001:10::/28, ORCHID', '2001:10::', '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:20::/28, ORCHIDv2', '2001:20::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:30::/28, remote ids of drones', '2001:30::', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::/32, documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2002::/16, 6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2620:4f:8000::/48, direct delegation AS112', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::/20, documentation', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['5f00::/16, segment routing', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::/7, unique local', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fe80::/10, link local', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fec0::/10, site local', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ff00::/8, multicast', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
];

/** The neighbours of the narrow blocks, which are ordinary addresses. */
const ordinary = [
  ['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
  ['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0'],
  ['192.0.3.0', '192.31.195.255', '192.31.197.0', '192.52.192.255', '192.52.194.0', '192.88.98.255'],
  ['192.88.100.0', '192.167.255.255', '192.169.0.0', '192.175.47.255', '192.175.49.0', '198.17.255.255'],
  ['198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'],
  ['2000::', '2001:200::', '2001:db7:ffff::', '2001:db9::', '2001:ffff::', '2003::', '2606:4700::1111'],
  ['2620:4f:7fff:ffff::', '2620:4f:8001::', '2a00:1450:400a::200e', '3ffe:ffff::', '3fff:1000::'],
].flat();

const webhooks = new AddressPolicy({ allow: [], allow_http: false });

describe('An address', () => {
  it.each(registry)('of %s is none of the internet', (_block, ...ends) => {
    for (const address of ends) {
      expect([address, isPublicIp(address) && !isExampleIp(address)]).toEqual([address, false]);
      expect([address, webhooks.reaches(address)]).toEqual([address, false]);
    }
  });

  it('beside the blocks of the registries is one of the internet', () => {
    expect(ordinary.filter((address) => !isPublicIp(address) || isExampleIp(address))).toEqual([]);
    expect(ordinary.filter((address) => !webhooks.reaches(address))).toEqual([]);
  });

  it('is a plain one: other spellings and zones are none', () => {
    const others = ['', 'localhost', '127.1', '2130706433', '0x8.8.8.8', '8.8.8.8 ', '[2606:4700::1111]'];
    expect(others.filter((address) => isPublicIp(address) || isExampleIp(address))).toEqual([]);
    expect(isPublicIp('fe80::1%lo')).toBe(false);
  });
});
