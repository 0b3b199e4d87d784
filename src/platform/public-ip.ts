/** Which addresses are of the internet. The one list for all that must not be led into a private network, or reports what is public. */
import { isIP } from 'node:net';
import { Networks } from './networks.ts';

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

const special = new Networks([...special_v4, ...special_v6]);
const unicast = new Networks([unicast_v6]);
const example = new Networks(examples);

/** Whether the address is public: no private, shared, link-local, loopback, multicast, translated, tunnelled or other special one. */
export function isPublicIp(address: string): boolean {
  if (special.has(address)) return false;
  return isIP(address) === 4 || unicast.has(address);
}

/** Whether the address is reserved for documentation or benchmarking, which `isPublicIp` takes for public. */
export function isExampleIp(address: string): boolean {
  return example.has(address);
}
