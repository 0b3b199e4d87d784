/** Addresses as the kernel expects them on x64 and arm64: `sockaddr_in` and `sockaddr_in6` of Linux, from and to text. */
import { isIPv4, isIPv6 } from 'node:net';
import { texts } from '../texts.ts';

export type Family = 4 | 6;

export const af_inet = 2;
export const af_inet6 = 10;
/** Room for either form. */
export const socket_address_bytes = 28;

const ipv4_socket_address_bytes = 16;
const ipv6_groups = 8;

/** 4, 6, or null for what is no IP address. */
export function familyOf(host_ip: string): Family | null {
  if (isIPv4(host_ip)) return 4;
  return isIPv6(host_ip) ? 6 : null;
}

/** `sockaddr_in` or `sockaddr_in6`. The zone of a link-local address is left out: the socket is bound to its device. */
export function encodeSocketAddress(host_ip: string, port: number): Buffer {
  const family = familyOf(host_ip);
  if (family === null) throw new TypeError(texts.not_an_address(host_ip));
  const address = Buffer.alloc(family === 4 ? ipv4_socket_address_bytes : socket_address_bytes);
  address.writeUInt16LE(family === 4 ? af_inet : af_inet6, 0);
  address.writeUInt16BE(port, 2);
  if (family === 4) address.set(ipv4Bytes(host_ip), 4);
  else address.set(ipv6Bytes(host_ip), 8);
  return address;
}

/** The address in text, IPv6 in its canonical short form (RFC 5952), or null for a family that is neither. */
export function decodeSocketAddress(address: Buffer): string | null {
  const family = address.readUInt16LE(0);
  if (family === af_inet) return address.subarray(4, 8).join('.');
  return family === af_inet6 ? ipv6Text(address.subarray(8, 24)) : null;
}

/** The one spelling of an address, so that two can be compared. */
export function canonicalIp(host_ip: string): string {
  return isIPv4(host_ip) ? host_ip : ipv6Text(ipv6Bytes(host_ip));
}

/** Sixteen bytes of an IPv6 address as canonical text. */
export function ipv6Text(bytes: Uint8Array): string {
  const groups = Array.from({ length: ipv6_groups }, (_, at) =>
    (((bytes[at * 2] ?? 0) << 8) | (bytes[at * 2 + 1] ?? 0)).toString(16),
  );
  // A URL writes an address in the form of RFC 5952, which saves a second implementation of it.
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}

function ipv4Bytes(host_ip: string): number[] {
  return host_ip.split('.').map(Number);
}

function ipv6Bytes(host_ip: string): Uint8Array {
  const [address = ''] = host_ip.split('%');
  const [head = '', tail] = address.split('::');
  const front = groupsOf(head);
  const back = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array.from({ length: ipv6_groups - front.length - back.length }, () => 0);
  const groups = [...front, ...zeros, ...back];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

function groupsOf(part: string): number[] {
  return part
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => {
      if (!group.includes('.')) return [Number.parseInt(group, 16)];
      const [a = 0, b = 0, c = 0, d = 0] = ipv4Bytes(group);
      return [(a << 8) | b, (c << 8) | d];
    });
}
