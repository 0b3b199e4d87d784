/** Which addresses of an interface are what: usable at all, and public. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { isExampleIp, isPublicIp } from '../../../src/platform/public-ip.ts';

/** Addresses that lead nowhere beyond the wire they are on. */
const wire_only = new BlockList();
wire_only.addSubnet('127.0.0.0', 8, 'ipv4');
wire_only.addSubnet('169.254.0.0', 16, 'ipv4');
wire_only.addAddress('::1', 'ipv6');
wire_only.addSubnet('fe80::', 10, 'ipv6');

/** Whether traffic could leave the wire with one of these addresses. */
export function isConfigured(addresses: readonly string[]): boolean {
  return addresses.some((address) => !wire_only.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'));
}

/** The public address among an interface's own, IPv4 first; null when it is behind a NAT. */
export function ownPublicAddress(addresses: readonly string[]): string | null {
  // No server ever sees an example address, so that an interface's word for one is no proof.
  const ours = addresses.filter((address) => isPublicIp(address) && !isExampleIp(address));
  return ours.find((address) => isIPv4(address)) ?? ours[0] ?? null;
}
