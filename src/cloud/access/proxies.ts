/** Finds the address of a client behind reverse proxies that the configuration trusts, and which addresses count together. What other peers claim in these headers is ignored. */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { Networks, plainIp } from '../../platform/networks.ts';

/** The header that the proxies set or extend. The other one passes through them as its sender wrote it. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded';

export interface ProxyRules {
  /** Addresses and networks: `10.0.0.5`, `10.1.0.0/24`. */
  readonly trusted: readonly string[];
  readonly header: ForwardedHeader;
}

/** Proxies one behind the other; what stands further to the left was written by a client. */
const hops_max = 16;
/** After this many requests with credentials, none with a client address, the proxy is reported. */
export const unnamed_max = 20;
/** Proxies that are observed; a trusted network may have any number of addresses. */
const proxies_noted_max = 64;

/** A trusted proxy that names no clients, and the header that it should do so in. */
export interface SilentProxy {
  readonly proxy: string;
  readonly header: ForwardedHeader;
}

export class TrustedProxies {
  readonly #header: ForwardedHeader;
  readonly #trusted: Networks;
  readonly #onSilent: ((silent: SilentProxy) => void) | undefined;
  /** By proxy: its requests without a named client; `Infinity` once it has named one, or was reported. */
  readonly #unnamed = new Map<string, number>();

  /** `onSilent` is called once for each proxy that names no clients; all its clients then count as one. */
  constructor(
    { trusted, header }: ProxyRules = { trusted: [], header: 'x-forwarded-for' },
    onSilent?: (silent: SilentProxy) => void,
  ) {
    this.#header = header;
    this.#onSilent = onSilent;
    this.#trusted = new Networks(
      trusted.map((each) => (each.includes('/') ? each : `${each}/${isIP(each) === 6 ? 128 : 32}`)),
    );
  }

  isTrusted(address: string): boolean {
    return this.#trusted.has(plainIp(address));
  }

  /**
   * The client of a request that came from `peer`: from the right, the first address in the header that is no trusted proxy
   * (RFC 7239, section 7.4). Where the header is missing or names none, the last proxy that is known.
   */
  clientOf(headers: Readonly<IncomingHttpHeaders>, peer: string): string {
    if (!this.isTrusted(peer)) return peer;
    let client = peer;
    for (const address of this.#hops(headers)) {
      if (address === undefined) return client;
      client = address;
      if (!this.isTrusted(address)) return client;
    }
    return client;
  }

  /** Notes whether the proxy that a request came from names its client. Health checks of the proxy itself have no credentials. */
  observe(headers: Readonly<IncomingHttpHeaders>, peer: string): void {
    if (!this.isTrusted(peer)) return;
    const isNamed = this.#hops(headers)[0] !== undefined;
    if (!isNamed && headers['x-api-key'] === undefined && headers.cookie === undefined) return;
    const proxy = plainIp(peer);
    const unnamed = this.#unnamed.get(proxy);
    if (unnamed === undefined && this.#unnamed.size >= proxies_noted_max) return;
    const count = isNamed ? Infinity : (unnamed ?? 0) + 1;
    this.#unnamed.set(proxy, count < unnamed_max ? count : Infinity);
    if (count === unnamed_max) this.#onSilent?.({ proxy, header: this.#header });
  }

  /** The addresses in the header, the nearest first; undefined for what is no address. */
  #hops(headers: Readonly<IncomingHttpHeaders>): readonly (string | undefined)[] {
    const text = [headers[this.#header] ?? []].flat().join(',');
    const hops = this.#header === 'forwarded' ? forwardedFor(text) : text.split(',');
    return hops.slice(-hops_max).toReversed().map(addressIn);
  }
}

/** A parameter of `Forwarded` and what follows it: `for="[2001:db8::1]:47011";`. Sticky, and each character is read once. */
const parameter =
  /[ \t]*(?:(?<name>[!#$%&'*+.^_`|~\w-]+)=(?:(?<token>[!#$%&'*+.^_`|~\w-]+)|"(?<quoted>(?:[^"\\]|\\.)*)")[ \t]*)?(?<end>[;,]|$)/uy;

/** The value of `for` of each element, empty where there is none; nothing at all of a header that is malformed anywhere. */
function forwardedFor(text: string): readonly string[] {
  const found: string[] = [];
  let current = '';
  parameter.lastIndex = 0;
  for (;;) {
    const { name, token, quoted, end } = parameter.exec(text)?.groups ?? {};
    // An open quote of a client would hide what the proxy added behind it.
    if (end === undefined) return [];
    if (name?.toLowerCase() === 'for') current = token ?? quoted?.replaceAll(/\\(.)/gu, '$1') ?? '';
    if (end === ';') continue;
    found.push(current);
    current = '';
    if (end === '') return found;
  }
}

/** The address of a hop without its port; undefined for `unknown`, names and anything else. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim();
  const bare =
    /^\[(?<v6>[^\]]+)\](?::\d{1,5})?$/u.exec(text)?.groups?.['v6'] ??
    text.replace(/^([\d.]+):\d{1,5}$/u, '$1');
  const address = plainIp(bare);
  return isIP(address) === 0 ? undefined : address;
}

/** A proxy on this machine carries the connections of many clients. */
const local_proxies: ReadonlySet<string> = new Set(['127.0.0.1', '::1']);

/** Whether this address, as `networkOf` returns it, is that of a proxy on this machine. */
export function isLocalProxy(network: string): boolean {
  return local_proxies.has(network);
}

const ipv6_groups = 8;
const network_groups = 4;

/** Returns the address; for IPv6 the /64 network of the host, with the zeros that its short form leaves out. */
export function networkOf(address: string | undefined): string {
  const plain = plainIp(address ?? '').replace(/%.*$/u, '');
  if (!plain.includes(':') || isLocalProxy(plain)) return plain;
  const [before = [], after] = plain.split('::').map((part) => part.split(':').filter(Boolean));
  const written = before.length + (after?.length ?? 0);
  const zeros = after ? Array.from({ length: Math.max(0, ipv6_groups - written) }, () => '0') : [];
  return [...before, ...zeros, ...(after ?? [])].slice(0, network_groups).join(':');
}
