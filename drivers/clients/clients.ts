/** Lists the devices on the kit's local network from kernel tables and dnsmasq leases; sends nothing to find them. */
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, FileRefused } from '../../src/platform/errors.ts';
import { type Neighbour, readNeighbours } from '../../src/platform/linux/arp-table.ts';
import { sleep } from '../../src/platform/time.ts';
import { type ClientsOptions, clientsOptions } from './options.ts';
import { readBytesUpTo, readTextUpTo, table_bytes_max } from '../../src/platform/bounded-file.ts';
import { isIP, isIPv4 } from 'node:net';
import type { Client } from '../../src/contract/kit.ts';
import { exists, readNames, readText } from '../../src/toolkit/device/system-files.ts';

type Medium = 'wired' | 'wireless';

export interface LanLink {
  readonly name: string;
  readonly ifindex: number;
  /** Null: unknown, as behind a separate access point or on a bridge with ports of both kinds. */
  readonly medium: Medium | null;
  /** Stations on the ports of a bridge, by MAC. */
  readonly stations: ReadonlyMap<string, Station>;
}

interface Station {
  readonly medium: Medium | null;
  readonly age_s: number;
}

interface Lan {
  readonly links: readonly LanLink[];
  /** MAC addresses of this machine, which is not a client of itself. */
  readonly own_macs: ReadonlySet<string>;
}

/** Reads the local network. Entries that cannot be read are left out. `known`: addresses that count however many others there are. */
async function readLan(options: ClientsOptions, known: ReadonlySet<string>): Promise<Lan> {
  const dir = join(options.roots.sys, 'class/net');
  const names = (await readNames(dir)) ?? [];
  const addresses = await Promise.all(names.map(async (name) => readText(join(dir, name, 'address'))));
  const chosen =
    options.interfaces.length > 0
      ? names.filter((name) => options.interfaces.includes(name))
      : await filtered(names, async (name) => isLanBridge(dir, name));
  const links = await Promise.all(chosen.map(async (name) => readLink(dir, name, { options, known })));
  return {
    links: links.filter((link) => link !== undefined),
    own_macs: new Set(addresses.filter((mac) => mac !== undefined)),
  };
}

/** A bridge with a hardware port: those of containers and virtual machines have none. */
async function isLanBridge(dir: string, name: string): Promise<boolean> {
  const ports = (await readNames(join(dir, name, 'brif'))) ?? [];
  return (await filtered(ports, async (port) => exists(join(dir, port, 'device')))).length > 0;
}

interface Looking {
  readonly options: ClientsOptions;
  readonly known: ReadonlySet<string>;
}

async function readLink(
  dir: string,
  name: string,
  { options, known }: Looking,
): Promise<LanLink | undefined> {
  const ifindex = Number(await readText(join(dir, name, 'ifindex')));
  if (!Number.isInteger(ifindex) || ifindex <= 0) return undefined;
  const names = await readNames(join(dir, name, 'brif'));
  if (!names) return { name, ifindex, medium: await mediumOf(dir, name, options), stations: new Map() };
  const ports = new Map<number, Medium | null>();
  for (const port of names) {
    const number = Number(await readText(join(dir, port, 'brport/port_no')));
    if (Number.isInteger(number)) ports.set(number, await mediumOf(dir, port, options));
  }
  const kinds = new Set(ports.values());
  const [only = null] = kinds;
  const table = await readBytesUpTo(join(dir, name, 'brforward'), table_bytes_max).catch(() =>
    Buffer.alloc(0),
  );
  const stations = parseForwarding(table, ports, known);
  return { name, ifindex, medium: kinds.size === 1 ? only : null, stations };
}

async function mediumOf(dir: string, port: string, options: ClientsOptions): Promise<Medium | null> {
  if (options.access_point_ports.includes(port)) return null;
  const isWireless =
    (await exists(join(dir, port, 'phy80211'))) || (await exists(join(dir, port, 'wireless')));
  return isWireless ? 'wireless' : 'wired';
}

/** `struct __fdb_entry` of linux/if_bridge.h: MAC, port, is_local, age in USER_HZ, high byte of the port. */
const entry_bytes = 16;
const ticks_per_second = 100;
/** A host can send from as many addresses as it likes, and a bridge remembers them all for five minutes. */
export const strangers_max = 4_096;
const entries_max = 65_536;

/**
 * Parses the forwarding table. The bridge's own addresses and removed ports are left out, and so is what is beyond the limit
 * of addresses that are not `known`.
 */
export function parseForwarding(
  table: Buffer,
  ports: ReadonlyMap<number, Medium | null>,
  known: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, Station> {
  const stations = new Map<string, Station>();
  const expected = new Set(Array.from(known, (mac) => mac.replaceAll(':', '')));
  const end = Math.min(table.length, entries_max * entry_bytes);
  let strangers = 0;
  for (let at = 0; at + entry_bytes <= end; at += entry_bytes) {
    const medium = ports.get(table.readUInt8(at + 6) + table.readUInt8(at + 12) * 256);
    if (table.readUInt8(at + 7) !== 0 || medium === undefined) continue;
    const digits = table.toString('hex', at, at + 6);
    if (!expected.has(digits) && (strangers += 1) > strangers_max) continue;
    const mac = digits.replaceAll(/..(?=.)/gu, '$&:');
    stations.set(mac, { medium, age_s: table.readUInt32LE(at + 8) / ticks_per_second });
  }
  return stations;
}

async function filtered<T>(all: readonly T[], keep: (each: T) => Promise<boolean>): Promise<readonly T[]> {
  const kept = await Promise.all(all.map(keep));
  return all.filter((_, at) => kept[at]);
}

/** A name that a device gave itself, or that the administrator gave it. */
interface Lease {
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

export interface Sources {
  readonly lan: Lan;
  readonly neighbours: readonly Neighbour[];
  readonly leases: readonly Lease[];
  readonly own_ips: ReadonlySet<string>;
}

interface Rules {
  readonly present_s: number;
  readonly names: boolean;
}

/** A device with the evidence of its presence, newest first. */
interface Present {
  readonly mac: string;
  readonly link: LanLink;
  readonly seen: Neighbour[];
}

/** One entry for each MAC address that is present, in the order of the addresses. */
export function joinClients(sources: Sources, { present_s, names }: Rules): readonly Client[] {
  const { lan, leases, own_ips } = sources;
  const links = new Map(lan.links.map((link) => [link.ifindex, link]));
  const present = new Map<string, Present>();
  for (const { link, mac, seen } of candidates(sources, links)) {
    if (isOurs(mac, lan) || !isStation(mac) || (seen && own_ips.has(seen.ip))) continue;
    const before = present.get(mac)?.seen ?? [];
    if (seen) before.push(seen);
    present.set(mac, { mac, link, seen: before });
  }
  const leased = leasesBy(leases);
  return [...present.values()]
    .filter((each) => isPresent(each, present_s))
    .map((each) => clientOf(each, leased, names))
    .sort(byMac);
}

/** At most so many: those with an address before those of which only frames were seen, which a host can send from any address. */
export function mostOf(found: readonly Client[], max: number): Client[] {
  if (found.length <= max) return [...found];
  const isAddressed = ({ ip }: Client): boolean => ip !== null;
  const chosen = [...found.filter(isAddressed), ...found.filter((each) => !isAddressed(each))];
  return chosen.slice(0, max).sort(byMac);
}

function byMac(a: Client, b: Client): number {
  return a.mac < b.mac ? -1 : 1;
}

/** The last lease of each kind that counts. */
interface Leased {
  readonly by_mac: ReadonlyMap<string, Lease>;
  readonly named_by_mac: ReadonlyMap<string, Lease>;
  /** Leases without a MAC address. */
  readonly by_ip: ReadonlyMap<string, { readonly lease: Lease; readonly at: number }>;
}

function leasesBy(leases: readonly Lease[]): Leased {
  const by_mac = new Map<string, Lease>();
  const named_by_mac = new Map<string, Lease>();
  const by_ip = new Map<string, { readonly lease: Lease; readonly at: number }>();
  for (const [at, lease] of leases.entries()) {
    if (lease.mac === null) by_ip.set(lease.ip, { lease, at });
    else by_mac.set(lease.mac, lease);
    if (lease.mac !== null && lease.name !== null) named_by_mac.set(lease.mac, lease);
  }
  return { by_mac, named_by_mac, by_ip };
}

interface Candidate {
  readonly link: LanLink;
  readonly mac: string;
  readonly seen?: Neighbour;
}

function candidates({ lan, neighbours }: Sources, links: ReadonlyMap<number, LanLink>): readonly Candidate[] {
  const forwarded = lan.links.flatMap((link) => [...link.stations.keys()].map((mac) => ({ link, mac })));
  const seen = neighbours.flatMap((neighbour) => {
    const link = links.get(neighbour.ifindex);
    return link ? [{ link, mac: neighbour.mac, seen: neighbour }] : [];
  });
  return [...forwarded, ...seen];
}

/** True for a recent frame on a bridge port or a recent confirmation as a neighbour. An entry that never ages is no evidence. */
function isPresent({ mac, link, seen }: Present, present_s: number): boolean {
  const station = link.stations.get(mac);
  if (station && station.age_s <= present_s) return true;
  return seen.some(
    ({ state, confirmed_s }) => state === 'reachable' || (state === 'unsure' && confirmed_s <= present_s),
  );
}

function clientOf({ mac, link, seen }: Present, leased: Leased, names: boolean): Client {
  const ip = bestIp(seen) ?? leased.by_mac.get(mac)?.ip ?? null;
  const [by_ip] = seen
    .flatMap(({ ip: address }) => leased.by_ip.get(address) ?? [])
    .sort((a, b) => b.at - a.at);
  const name = leased.named_by_mac.get(mac)?.name ?? by_ip?.lease.name ?? null;
  const type = link.stations.has(mac) ? link.stations.get(mac)?.medium : link.medium;
  return {
    mac,
    ip,
    name: names ? name : null,
    type: type ?? null,
  };
}

/** IPv4 before IPv6, routable before link-local, then the latest confirmation. */
function bestIp(seen: readonly Neighbour[]): string | undefined {
  const rank = ({ ip }: Neighbour): number => (isIPv4(ip) ? 0 : ip.startsWith('fe80:') ? 2 : 1);
  const [best] = seen.toSorted((a, b) => rank(a) - rank(b) || a.confirmed_s - b.confirmed_s);
  return best?.ip;
}

function isOurs(mac: string, lan: Lan): boolean {
  return lan.own_macs.has(mac);
}

/** False for group addresses (lowest bit of the first byte) and for the null address. */
function isStation(mac: string): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0 && mac !== '00:00:00:00:00:00';
}

const lease_file_bytes_max = 1_048_576;
/** The hub sends changes once a second and drops the values of a lost driver, so the empty list is kept this long before the driver ends. */
const final_report_ms = 1_500;

export const clients = defineDriver({
  name: 'clients',
  feeds: noFeeds,
  options: clientsOptions,
  run: runClients,
});

async function runClients(options: ClientsOptions, host: DriverHost<typeof noFeeds>): Promise<void> {
  const reported = { once: false, crowded: false };
  while (!host.signal.aborted) {
    const neighbours = await readNeighbours();
    const lan = await readLan(options, new Set(neighbours.map(({ mac }) => mac)));
    if (lan.links.length === 0) {
      if (reported.once) {
        host.reportKit({ clients: [] });
        await sleep(final_report_ms, host.signal);
      }
      if (host.signal.aborted) return;
      throw new DeviceUnreachable(noNetwork(options));
    }
    const { leases, unread } = await readLeases(options, lan);
    if (host.signal.aborted) return;
    const found = joinClients({ lan, neighbours, leases, own_ips: ownIps() }, options);
    const crowded = found.length > options.entries_max;
    if (crowded && !reported.crowded) {
      const facts = { found: found.length, entries_max: options.entries_max };
      host.log.warn(facts, texts.limit_exceeded);
    }
    if (!crowded && reported.crowded) {
      host.log.info({ found: found.length }, texts.within_limit);
    }
    host.reportKit({ clients: mostOf(found, options.entries_max) });
    host.reportStatus({
      clients: found.length,
      interfaces: lan.links.map((link) => link.name).join(', '),
      leases: leases.length,
      ...(unread.length > 0 ? { reason: texts.leases_unreadable(unread.join('; ')) } : {}),
    });
    reported.once = true;
    reported.crowded = crowded;
    await sleep(options.interval_s * 1_000, host.signal);
  }
}

function noNetwork({ interfaces }: ClientsOptions): string {
  return interfaces.length > 0 ? texts.interface_not_found(interfaces.join(' or ')) : texts.no_bridge;
}

/** Reads the leases of all files and lists the files that cannot be read. A missing file is not an error. */
async function readLeases(
  { leases, roots }: ClientsOptions,
  lan: Lan,
): Promise<{ readonly leases: readonly Lease[]; readonly unread: readonly string[] }> {
  const shared = lan.links.map(({ name }) => join(roots.var, `lib/NetworkManager/dnsmasq-${name}.leases`));
  const found: Lease[] = [];
  const unread: string[] = [];
  for (const file of [...leases, ...shared]) {
    const read = await readLeaseFile(file);
    if (typeof read === 'string') unread.push(`${file} (${read})`);
    else found.push(...read);
  }
  return { leases: found, unread };
}

/** Reads the leases of a file, or returns the reason why it cannot be read. */
async function readLeaseFile(file: string): Promise<readonly Lease[] | string> {
  try {
    return parseLeases(await readTextUpTo(file, lease_file_bytes_max));
  } catch (error) {
    if (error instanceof FileRefused) return error.message;
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return code === 'ENOENT' ? [] : String(code ?? error);
  }
}

function ownIps(): ReadonlySet<string> {
  return new Set(
    Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []),
  );
}

// Sentences of the clients driver that people read; tests refer to them by name.

export const texts = {
  limit_exceeded: 'client limit exceeded; reporting the first ones (options.entries_max)',
  within_limit: 'client count back within the limit; reporting all',
  leases_unreadable: (files: string) => `cannot read ${files}`,
  interface_not_found: (names: string) => `interface ${names} not found; check options.interfaces`,
  no_bridge: 'no bridge with a hardware port found; set options.interfaces',
} as const;
