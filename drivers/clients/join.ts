/** Joins neighbours, bridge ports and leases into the list of devices that are on the local network now. */
import { isIPv4 } from 'node:net';
import type { Client } from '../../src/contract/kit.ts';
import type { Neighbour } from '../../src/platform/linux/arp-table.ts';
import type { Lan, LanLink } from './lan.ts';
import type { Lease } from './leases.ts';

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
  readonly seen: readonly Neighbour[];
}

/** One entry for each MAC address that is present, in the order of the addresses. */
export function joinClients(sources: Sources, { present_s, names }: Rules): readonly Client[] {
  const { lan, leases, own_ips } = sources;
  const links = new Map(lan.links.map((link) => [link.ifindex, link]));
  const present = new Map<string, Present>();
  for (const { link, mac, seen } of candidates(sources, links)) {
    if (isOurs(mac, lan) || !isStation(mac) || (seen && own_ips.has(seen.ip))) continue;
    const before = present.get(mac);
    present.set(mac, { mac, link, seen: [...(before?.seen ?? []), ...(seen ? [seen] : [])] });
  }
  return [...present.values()]
    .filter((each) => isPresent(each, present_s))
    .map((each) => clientOf(each, leases, names))
    .sort((a, b) => (a.mac < b.mac ? -1 : 1));
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

function clientOf({ mac, link, seen }: Present, leases: readonly Lease[], names: boolean): Client {
  const lease = leases.findLast((each) => each.mac === mac && each.name !== null);
  const ip = bestIp(seen) ?? leases.findLast((each) => each.mac === mac)?.ip ?? null;
  const by_ip = leases.findLast(
    (each) => seen.some((neighbour) => neighbour.ip === each.ip) && each.mac === null,
  );
  const type = link.stations.has(mac) ? link.stations.get(mac)?.medium : link.medium;
  return {
    mac,
    ip,
    name: names ? (lease?.name ?? by_ip?.name ?? null) : null,
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
