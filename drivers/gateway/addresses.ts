/** Which addresses of an interface are what: usable at all, and public. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Addresses that lead nowhere beyond the wire they are on. */
const wire_only = new BlockList();
wire_only.addSubnet('127.0.0.0', 8, 'ipv4');
wire_only.addSubnet('169.254.0.0', 16, 'ipv4');
wire_only.addAddress('::1', 'ipv6');
wire_only.addSubnet('fe80::', 10, 'ipv6');

/** IPv4 that is not seen from outside (RFC 6890): private, carrier-grade NAT, documentation, multicast, reserved. */
const not_public = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  not_public.addSubnet(net, prefix, 'ipv4');
}

/** Global unicast IPv6 (RFC 4291) without the documentation prefix. */
const global_v6 = new BlockList();
global_v6.addSubnet('2000::', 3, 'ipv6');
const documentation_v6 = new BlockList();
documentation_v6.addSubnet('2001:db8::', 32, 'ipv6');

/** Whether traffic could leave the wire with one of these addresses. */
export function isConfigured(addresses: readonly string[]): boolean {
  return addresses.some((address) => !wire_only.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'));
}

/** The public address among them, IPv4 first; undefined when the interface is behind somebody's NAT. */
export function publicAddress(addresses: readonly string[]): string | undefined {
  return (
    addresses.find((address) => isIPv4(address) && !not_public.check(address, 'ipv4')) ??
    addresses.find(
      (address) =>
        isIPv6(address) && global_v6.check(address, 'ipv6') && !documentation_v6.check(address, 'ipv6'),
    )
  );
}
