/** Which interfaces carry the kit's own traffic: derived from the kernel's rules and default routes. Pure. */

import { isConfigured } from '../status.ts';

export type Family = 4 | 6;

export interface Path {
  readonly ifindex: number;
  /** Share among the paths of a multipath route. */
  readonly weight: number;
  /** False: the kernel itself passes it over. */
  readonly alive: boolean;
}

export interface DefaultRoute {
  readonly family: Family;
  readonly table: number;
  readonly metric: number;
  /** Empty: a default that refuses (`unreachable`, `blackhole`, `prohibit`). */
  readonly paths: readonly Path[];
}

export interface Rule {
  readonly family: Family;
  readonly priority: number;
  /** Null: the rule itself refuses (`unreachable`, `blackhole`, `prohibit`). */
  readonly table: number | null;
  /** `all`: unmarked packets of any address; `marked`: packets that a firewall marked; `some`: other conditions. */
  readonly matches: 'all' | 'marked' | 'some';
  /** `suppress_prefixlength`: default routes of the table do not count. */
  readonly skips_defaults: boolean;
}

/** Where the kernel sends unmarked packets of this process to one address of the internet. */
export interface Way {
  readonly family: Family;
  readonly ifindex: number;
  readonly table: number;
}

/** The kernel's tables, and what it makes of them. */
export interface Routing {
  /** Of addresses all over the internet; empty: the kernel cannot be asked, or has none. */
  readonly ways: readonly Way[];
  /** Configured names that are alternative names of interfaces, with the index of each. */
  readonly named: ReadonlyMap<string, number>;
  readonly routes: readonly DefaultRoute[];
  readonly rules: readonly Rule[];
  /** Interfaces with a route to a single host through a router: the server of a VPN stands behind one. */
  readonly host_routed: readonly number[];
  /** By ifindex; null: they cannot be known. */
  readonly addresses: ReadonlyMap<number, readonly string[]> | null;
}

const families = [4, 6] as const;

export const table_main = 254;
export const table_local = 255;

/** The default rules of the kernel. */
export const plain_rules: readonly Rule[] = families.map((family) => ({
  family,
  priority: 32_766,
  table: table_main,
  matches: 'all',
  skips_defaults: false,
}));

/** Interfaces with a default route in any table, those that the kernel sends packets to, and the carriers of a VPN. */
export function routedInterfaces(routing: Routing, carriers: readonly number[]): ReadonlySet<number> {
  return new Set([...defaultInterfaces(routing), ...routing.ways.map(({ ifindex }) => ifindex), ...carriers]);
}

function defaultInterfaces({ routes }: Routing): readonly number[] {
  return routes.flatMap(({ paths }) => paths.map(({ ifindex }) => ifindex));
}

/**
 * The families in which packets can leave by an interface for good: those with a default route and an address. Without both it may
 * still answer, since a failover service takes the route of a dead link away: then the families of its addresses, else of its routes.
 */
export function familiesOf(ifindex: number, { routes, addresses }: Routing): readonly Family[] {
  const own = addresses?.get(ifindex) ?? [];
  const addressed = families.filter(
    (family) => addresses === null || isConfigured(own.filter((ip) => ip.includes(':') === (family === 6))),
  );
  const routed = families.filter((family) =>
    routes.some((route) => route.family === family && route.paths.some((path) => path.ifindex === ifindex)),
  );
  const both = routed.filter((family) => addressed.includes(family));
  return [both, addressed, routed].find((each) => each.length > 0) ?? [];
}

/**
 * Interfaces that unmarked traffic of this machine leaves by, IPv4 first, the heavier path first. What a tunnel carries
 * leaves by one of the other interfaces in the end, so paths for which `isTunnel` holds are passed over.
 */
export function selectedInterfaces(
  routing: Routing,
  isTunnel: (ifindex: number) => boolean,
  carriers: readonly number[],
): readonly number[] {
  const direct = directInterfaces(routing, isTunnel);
  return direct.length > 0 ? direct : carriers;
}

/** The interfaces that carry a tunnel with all of the traffic, as far as a host route to its server shows them. */
export function carriersOfTunnel(
  routing: Routing,
  isTunnel: (ifindex: number) => boolean,
): readonly number[] {
  const in_main = families.flatMap((family) => carriersInMain(family, routing, isTunnel));
  if (directInterfaces(routing, isTunnel).length > 0 || refusesTraffic(routing)) return [...new Set(in_main)];
  const isTunnelled = directInterfaces(routing, () => false).length > 0;
  return isTunnelled ? hostRouted(routing, isTunnel) : [];
}

/**
 * A VPN in the main table reaches its server by a host route, since its own packets would be sent into it else. One in a table of
 * its own marks them instead, and they follow the default routes.
 */
function carriersInMain(
  family: Family,
  routing: Routing,
  isTunnel: (ifindex: number) => boolean,
): readonly number[] {
  const ways = routing.ways.filter((way) => way.family === family);
  const isInMain = ways.length > 0 && ways.every((way) => way.table === table_main && isTunnel(way.ifindex));
  return isInMain ? hostRouted(routing, isTunnel) : [];
}

/** Carriers over which nothing but the server of the tunnel can answer, since no default route leads there. */
export function serverOnly(routing: Routing, carriers: readonly number[]): readonly number[] {
  const routed = new Set(defaultInterfaces(routing));
  return carriers.filter((ifindex) => !routed.has(ifindex));
}

function hostRouted({ host_routed }: Routing, isTunnel: (ifindex: number) => boolean): readonly number[] {
  return host_routed.filter((ifindex) => !isTunnel(ifindex));
}

function directInterfaces(routing: Routing, isTunnel: (ifindex: number) => boolean): readonly number[] {
  const selected = families.flatMap((family) => selectedOf(family, routing, isTunnel));
  return [...new Set(selected)];
}

/** All interfaces in the order in which unmarked traffic would take them if those before could carry nothing: first those selected. */
export function failoverOrder(
  routing: Routing,
  isTunnel: (ifindex: number) => boolean,
  selected: readonly number[],
): readonly number[] {
  const ways = families.map((family) => waysOf(family, routing, isTunnel));
  const order = new Set<number>();
  for (let next = selected; next.length > 0;) {
    for (const ifindex of next) order.add(ifindex);
    next = ways.flatMap((all) => {
      while (all[0]?.every((ifindex) => order.has(ifindex))) all.shift();
      return all[0]?.filter((ifindex) => !order.has(ifindex)) ?? [];
    });
  }
  return [...order];
}

/** Some traffic is refused. */
export function refusesTraffic(routing: Routing): boolean {
  return refusedFamilies(routing).length > 0;
}

/** Where a default route or rule that refuses (`blackhole`, `unreachable`, `prohibit`) precedes every path of unmarked traffic. */
export function refusedFamilies({ routes, rules, ways }: Routing): readonly Family[] {
  return families.filter((family) => {
    if (ways.some((way) => way.family === family)) return false;
    for (const { table } of rulesOf(family, rules)) {
      if (table === null) return true;
      const found = routes.filter((route) => route.family === family && route.table === table);
      const [best] = found.toSorted((a, b) => a.metric - b.metric);
      if (best) return best.paths.length === 0;
    }
    return false;
  });
}

/** The rules for unmarked traffic, by priority. */
function rulesOf(family: Family, rules: readonly Rule[]): readonly Rule[] {
  return rules
    .filter((rule) => rule.family === family && rule.matches === 'all' && !rule.skips_defaults)
    .sort((a, b) => a.priority - b.priority);
}

/**
 * The default routes and rules of the tables, which name all paths, unless the kernel sends packets elsewhere: by routes that are
 * more specific and cover the internet together (0.0.0.0/1 and 128.0.0.0/1), or by rules that the tables do not show.
 */
function selectedOf(
  family: Family,
  routing: Routing,
  isTunnel: (ifindex: number) => boolean,
): readonly number[] {
  const by_tables = waysOf(family, routing, isTunnel)[0] ?? [];
  const ways = routing.ways.filter((way) => way.family === family);
  const direct = ways.map(({ ifindex }) => ifindex).filter((ifindex) => !isTunnel(ifindex));
  if (direct.length > 0) return direct.every((ifindex) => by_tables.includes(ifindex)) ? by_tables : direct;
  const carriers = carriersInMain(family, routing, isTunnel);
  const isExplained = carriers.length === 0 || carriers.some((ifindex) => by_tables.includes(ifindex));
  return isExplained ? by_tables : carriers;
}

/** The interfaces of each way out, in the order in which the kernel tries them, the heavier path first; up to a refusal. */
function waysOf(
  family: Family,
  { routes, rules }: Routing,
  isTunnel: (ifindex: number) => boolean,
): (readonly number[])[] {
  const byTable = Map.groupBy(
    routes.filter((route) => route.family === family),
    ({ table }) => table,
  );
  const ways: (readonly number[])[] = [];
  for (const { table } of rulesOf(family, rules)) {
    if (table === null) return ways;
    const byMetric = Map.groupBy(byTable.get(table) ?? [], ({ metric }) => metric);
    for (const [, equals] of [...byMetric].sort(([a], [b]) => a - b)) {
      if (equals.some(({ paths }) => paths.length === 0)) return ways;
      const usable = equals.map(({ paths }) =>
        paths.filter(({ alive, ifindex }) => alive && !isTunnel(ifindex)),
      );
      // Of IPv4 routes with one metric the kernel takes the first; those of IPv6 it takes in turn.
      for (const paths of family === 4 ? usable : [usable.flat()])
        if (paths.length > 0)
          ways.push(paths.toSorted((a, b) => b.weight - a.weight).map(({ ifindex }) => ifindex));
    }
  }
  return ways;
}
