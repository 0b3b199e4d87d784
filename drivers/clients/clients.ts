/** Lists the devices on the kit's local network from kernel tables and dnsmasq leases; sends nothing to find them. */
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, FileRefused } from '../../src/platform/errors.ts';
import { type Neighbour, readNeighbours } from '../../src/platform/linux/arp-table.ts';
import { sleep } from '../../src/platform/time.ts';
import { type Lan, type LanLink, readLan } from './lan.ts';
import { type Lease, parseLeases } from './leases.ts';
import { type ClientsOptions, clientsOptions } from './options.ts';
import { readTextUpTo } from '../../src/platform/bounded-file.ts';
import { isIPv4 } from 'node:net';
import type { Client } from '../../src/contract/kit.ts';

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
