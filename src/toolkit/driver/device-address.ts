/**
 * Resolves addresses that a device reports: services, subscriptions, streams. A login is sent to them, so the host always
 * comes from the configuration; the device chooses the path, the query and possibly a port of the same host.
 */
import { texts } from './texts.ts';

export interface OwnAddress {
  readonly scheme: 'http' | 'https' | 'rtsp' | 'rtsps';
  /** As configured; an IPv6 address without brackets. */
  readonly host: string;
  /** Where the device does not report a port that counts. */
  readonly port: number;
  /**
   * `same_host`: a reported port counts where the device names the configured host and scheme; never on the gateway itself,
   * whose other ports belong to others. `reported`: it counts whatever host the device names. `configured`: it never counts.
   */
  readonly ports: 'same_host' | 'reported' | 'configured';
  /** IP address to which `host` led, where that is a name: devices report their address, not the name. */
  readonly peer_address?: string | undefined;
}

export type DeviceAddress = { readonly url: string } | { readonly refused: string };

const chars_max = 2_048;
/** By scheme. A map, since an object also has inherited names: `constructor://`. */
const default_ports: ReadonlyMap<string, number> = new Map([
  ['http', 80],
  ['https', 443],
  ['rtsp', 554],
  ['rtsps', 322],
]);

/**
 * Returns the address on the configured host, without a login, or why the reported one is refused. A user and password in it are
 * those of the camera or of a person: the configured ones are used.
 */
export function deviceAddress(reported: string, own: OwnAddress): DeviceAddress {
  const fault = faultOf(reported);
  if (fault !== undefined) return refusal(fault, reported, own);
  const url = URL.parse(withHost(reported, own));
  if (!url) return refusal(texts.not_a_url, reported, own);
  const scheme = url.protocol.slice(0, -1);
  if (scheme.startsWith('http') !== own.scheme.startsWith('http') || !default_ports.has(scheme)) {
    return refusal(texts.other_scheme(scheme.slice(0, 16), own.scheme), reported, own);
  }
  const path = url.pathname.startsWith('/') ? url.pathname : `/${url.pathname}`;
  const place = own.scheme.startsWith('rtsp') ? zonedHost(own.host) : urlHost(own.host);
  return { url: `${own.scheme}://${place}:${portOf(url, own)}${path}${url.search}` };
}

/** Cameras leave out the host (`http:///onvif/events`), the scheme with it, or add the zone of their own interface. */
function withHost(reported: string, own: OwnAddress): string {
  const host = urlHost(own.host);
  const [whole = '', scheme, port] = /^([a-z][a-z0-9+.-]*):\/\/(:\d+)?(?=\/)/iu.exec(reported) ?? [];
  if (scheme !== undefined) {
    return `${scheme}://${host}${port ?? `:${own.port}`}${reported.slice(whole.length)}`;
  }
  if (/^[a-z][a-z0-9+.-]*:/iu.test(reported))
    return reported.replace(/(?<=:\/\/(?:[^/@]*@)?\[[^\]%/]*)%[^\]/]*(?=\])/u, '');
  return `${own.scheme}://${host}:${own.port}/${reported.replace(/^\//u, '')}`;
}

/** Names tampering only where the address leads to another host: anything else is a fault of the firmware. */
function refusal(fault: string, reported: string, own: OwnAddress): DeviceAddress {
  const bare = reported.slice(0, chars_max).replace(/^(?:[a-z][a-z0-9+.-]*:)?\/*/iu, 'http://');
  const isOther = (URL.parse(bare)?.hostname ?? '') !== '' && !namesOwnHost(bare, own);
  return { refused: isOther ? texts.names_other_host(fault) : fault };
}

/** Whether the device names the host under which it is configured, and not, say, its address behind a router. */
export function namesOwnHost(
  reported: string,
  { host, peer_address = host }: Pick<OwnAddress, 'host' | 'peer_address'>,
): boolean {
  const named = URL.parse(reported)?.hostname.toLowerCase() ?? '';
  return [host, peer_address].some((own) => urlHost(own).toLowerCase() === named);
}

function faultOf(reported: string): string | undefined {
  if (reported.length > chars_max) return texts.too_long(chars_max);
  if (/[\p{Cc}\s\\]/u.test(reported)) return texts.forbidden_characters;
  // What follows a fragment sign is an instruction to some media servers, and never part of a request.
  if (reported.includes('#')) return texts.has_fragment;
  const isRead = /^(?:[a-z][a-z0-9+.-]{0,15}:\/\/.|\/(?!\/)|[\w.~%-]+(?:[/?]|$))/iu.test(reported);
  return isRead ? undefined : texts.no_host;
}

/** The host as it stands in a URL: an IPv6 address in brackets, without its zone, which counts on this machine alone. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host.replace(zone, '')}]` : host;
}
const zone = /%.*$/u;

/** For a program of this machine, which must know through which interface (RFC 6874). */
function zonedHost(host: string): string {
  return host.includes('%') ? `[${host.replace('%', '%25')}]` : urlHost(host);
}

function portOf(url: URL, own: OwnAddress): number {
  const scheme = url.protocol.slice(0, -1);
  const reported = url.port === '' ? (default_ports.get(scheme) ?? own.port) : Number(url.port);
  if (reported === 0 || own.ports === 'configured') return own.port;
  if (own.ports === 'reported') return reported;
  const isOwn = scheme === own.scheme && namesOwnHost(url.href, own);
  return isOwn && !mayBeThisMachine(own.host) && !mayBeThisMachine(own.peer_address ?? '')
    ? reported
    : own.port;
}

const loopback = /^(?:127\.|0\.|::1?$|(?:.+\.)?localhost$|ip6-(?:localhost|loopback)$)/u;
const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/u;

/** Whether the host is or may be the loopback of this machine, in any spelling; also a name that begins as such an address. */
export function mayBeThisMachine(host: string): boolean {
  return loopback.test(plainHost(host));
}

/** As resolvers read it: `2130706433`, `0x7f.1`, `127.1` and `::ffff:7f00:1` are all 127.0.0.1. In lower case, without brackets. */
export function plainHost(host: string): string {
  const name = URL.parse(`http://${urlHost(host)}/`)?.hostname ?? host.toLowerCase();
  const plain = name.replace(/^\[|\]$|\.$/gu, '');
  const [, high, low] = mapped.exec(plain) ?? [];
  if (high === undefined || low === undefined) return plain;
  const [first, second] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [first >> 8, first & 0xff, second >> 8, second & 0xff].join('.');
}
