/** Reads the lease file of dnsmasq: `EXPIRY MAC IP NAME CLIENT-ID`, and IPv6 leases after a line `duid`. */
import { isIP } from 'node:net';

/** A name that a device gave itself, or that the administrator gave it. */
export interface Lease {
  /** Lower case, colons; null for an IPv6 lease, which has none. */
  readonly mac: string | null;
  readonly ip: string;
  readonly name: string | null;
}

const leases_max = 4_096;
/** Other lines among them: of IPv6 servers, and what is no lease. */
const lines_max = 2 * leases_max;
const words_max = 4;
/** Longest label of a domain name (RFC 1035). */
const name_chars_max = 63;

/**
 * The leases of a file; other lines are skipped. The expiry is not used: it is an epoch, a remaining time or a
 * length, depending on how dnsmasq was built, and a lease outlives its device in any case.
 */
export function parseLeases(text: string): readonly Lease[] {
  const leases: Lease[] = [];
  for (const line of text.split('\n', lines_max)) {
    const [expiry = '', identity = '', ip = '', name] = line.trim().split(/\s+/u, words_max);
    if (!/^\d+$/u.test(expiry) || isIP(ip) === 0) continue;
    const mac = isIP(ip) === 4 ? macOf(identity) : null;
    if (mac === undefined) continue;
    leases.push({ mac, ip, name: cleanName(name ?? '*') });
    if (leases.length === leases_max) break;
  }
  return leases;
}

/** A name without control or direction characters, 63 characters; null for `*`, which means unknown. */
export function cleanName(name: string): string | null {
  const printable = name.replaceAll(/\p{C}/gu, '').trim();
  const clean = Array.from(printable).slice(0, name_chars_max).join('');
  return clean === '' || clean === '*' ? null : clean;
}

/** dnsmasq puts the hardware type before addresses other than Ethernet: `06-aa:bb:...`. */
function macOf(text: string): string | undefined {
  const mac = text.replace(/^[\da-f]{2}-/iu, '').toLowerCase();
  return /^[\da-f]{2}(?::[\da-f]{2}){5}$/u.test(mac) ? mac : undefined;
}
