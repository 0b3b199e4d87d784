/** Which addresses of an interface are what: usable at all, and public. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { isPublicIp } from '../probe/public-ip.ts';

/** Addresses that lead nowhere beyond the wire they are on. */
const wire_only = new BlockList();
wire_only.addSubnet('127.0.0.0', 8, 'ipv4');
wire_only.addSubnet('169.254.0.0', 16, 'ipv4');
wire_only.addAddress('::1', 'ipv6');
wire_only.addSubnet('fe80::', 10, 'ipv6');

/** Documentation and benchmarking (RFC 6890): no server ever sees them, so an interface's word for one is no proof. */
const examples = new BlockList();
for (const [net, prefix] of [
  ['192.0.2.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
] as const) {
  examples.addSubnet(net, prefix, 'ipv4');
}
examples.addSubnet('2001:db8::', 32, 'ipv6');

/** Whether traffic could leave the wire with one of these addresses. */
export function isConfigured(addresses: readonly string[]): boolean {
  return addresses.some((address) => !wire_only.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'));
}

/** The public address among an interface's own, IPv4 first; null when it is behind a NAT. */
export function ownPublicAddress(addresses: readonly string[]): string | null {
  const ours = addresses.filter(
    (address) => isPublicIp(address) && !examples.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
  );
  return ours.find((address) => isIPv4(address)) ?? ours[0] ?? null;
}
