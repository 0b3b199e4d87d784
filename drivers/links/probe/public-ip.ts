/** Which addresses can be reached from the internet, and which are private to a network or a provider. */
import { BlockList } from 'node:net';
import { familyOf } from '../../../src/platform/linux/socket-address.ts';

/** IANA special-purpose registries: addresses that an interface or a translator may have and that are not reachable from outside. */
const inner_networks = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  // Shared between a provider and its customers (RFC 6598): Starlink and most cellular networks.
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  // IETF protocol assignments: 464XLAT and DS-Lite give 192.0.0.x to an interface.
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
  ['::', 96],
  ['::ffff:0:0', 96],
  // Translators and tunnels hold an address of IPv4, which may be an inner one: NAT64, Teredo, 6to4.
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const;

/** One list for each family: a list of both takes every IPv4 address for one of `::ffff:0:0/96`. */
const inner = { 4: new BlockList(), 6: new BlockList() };
for (const [network, prefix] of inner_networks) {
  if (network.includes(':')) inner[6].addSubnet(network, prefix, 'ipv6');
  else inner[4].addSubnet(network, prefix, 'ipv4');
}

/** Whether the address is one of the internet: no private, shared, link-local, loopback, multicast, translated or tunnelled address. */
export function isPublicIp(ip: string): boolean {
  const family = familyOf(ip);
  if (family === null) return false;
  return !inner[family].check(ip, family === 4 ? 'ipv4' : 'ipv6');
}
