/** Which addresses are of the internet. The one list for all that must not be led into a private network, or reports what is public. */
import { BlockList, isIP } from 'node:net';

/**
 * The special-purpose registry of IANA for IPv4 (RFC 6890), multicast and what is reserved. Also anycast addresses of services
 * that a network may run for itself (AS112, AMT, relays of 6to4), though the registry has them as global: the nearest answers.
 */
const special_v4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  // Shared between a provider and its customers (RFC 6598): Starlink and most cellular networks.
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  // IETF protocol assignments: 464XLAT and DS-Lite give 192.0.0.x to an interface.
  '192.0.0.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '224.0.0.0/3',
] as const;

/** Of IPv6 only this is global unicast; all else is local, multicast, mapped, translated, a sink, or not assigned. */
const unicast_v6 = '2000::/3';

/** The special-purpose registry of IANA for IPv6, inside `unicast_v6`: IETF assignments (Teredo, ORCHID, AMT, AS112), 6to4, AS112. */
const special_v6 = ['2001::/23', '2002::/16', '2620:4f:8000::/48'] as const;

/** Documentation and benchmarking, of both registries: no server on the internet has one. */
const examples = [
  '192.0.2.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '2001:db8::/32',
  '3fff::/20',
] as const;

/** One list for each family: a list of both takes every IPv4 address for one of `::ffff:0:0/96`. */
const special = { ipv4: listOf(special_v4), ipv6: listOf(special_v6) };
const unicast = listOf([unicast_v6]);
const example = listOf(examples);

/** Whether the address is public: no private, shared, link-local, loopback, multicast, translated, tunnelled or other special one. */
export function isPublicIp(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  if (special[family].check(address, family)) return false;
  return family === 'ipv4' || unicast.check(address, family);
}

/** Whether the address is reserved for documentation or benchmarking, which `isPublicIp` takes for public. */
export function isExampleIp(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && example.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

/** A list of networks such as `10.20.0.0/16`. */
export function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
