/** Which connections of the service count together: those of an address. */
import type { Socket } from 'node:net';
import { plainIp } from '../../../platform/networks.ts';
import type { Share } from '../../../platform/http-server/connection-guard.ts';

/** Connections in all. */
export const connections_max = 1_024;
/** Per address. Proxies are exempt: a proxy on this machine, and the trusted ones of the configuration. */
export const address_connections_max = 64;
/** From this many connections, a new one replaces the oldest that waits for the rest of a request. */
export const pressure_connections = 768;

/** The shares of a new connection; none for one of a proxy, which carries many clients. */
export function sharesOf(
  { remoteAddress }: Socket,
  gate: { isTrusted: (address: string) => boolean },
): readonly Share[] {
  const name = networkOf(remoteAddress);
  if (isProxy(name) || gate.isTrusted(remoteAddress ?? '')) return [];
  return [{ name, connections_max: address_connections_max }];
}

/** A proxy on this machine carries the connections of many clients. */
const proxies: ReadonlySet<string> = new Set(['127.0.0.1', '::1']);

/** Whether this address, as `networkOf` returns it, is that of a proxy on this machine. */
export function isProxy(network: string): boolean {
  return proxies.has(network);
}

/** Returns the address; for IPv6 the /64 network of the host, with the zeros that its short form leaves out. */
export function networkOf(address: string | undefined): string {
  const plain = plainIp(address ?? '').replace(/%.*$/u, '');
  if (!plain.includes(':') || proxies.has(plain)) return plain;
  const [before = [], after] = plain.split('::').map((part) => part.split(':').filter(Boolean));
  const written = before.length + (after?.length ?? 0);
  const zeros = after ? Array.from({ length: Math.max(0, ipv6_groups - written) }, () => '0') : [];
  return [...before, ...zeros, ...(after ?? [])].slice(0, network_groups).join(':');
}
const ipv6_groups = 8;
const network_groups = 4;
