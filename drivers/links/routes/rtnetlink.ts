/** Caches the kernel's addresses, default routes and rules: reads all of them again after each change. */
import { libc } from '../../../src/platform/linux/libc.ts';
import {
  interfaceNamed,
  listenNetlink,
  dumpTable,
  aligned,
  type Attributes,
  readAttributes,
  uint32,
} from '../../../src/platform/linux/netlink.ts';
import { wayFinder } from '../../../src/platform/linux/route-lookup.ts';
import { sleep } from '../../../src/platform/time.ts';
import { Wake } from '../../../src/toolkit/device/wake.ts';
import {
  plain_rules,
  type Routing,
  type DefaultRoute,
  type Family,
  type Path,
  type Rule,
  type Way,
  table_local,
} from './routing.ts';
import { af_inet6, ipv6Text } from '../../../src/platform/linux/socket-address.ts';

// The decoders are pure; the layouts are those of linux/rtnetlink.h and linux/fib_rules.h.

const address_header_bytes = 8;
const route_header_bytes = 12;
const rule_header_bytes = 12;

/** `ifaddrmsg`. */
const ifa = { address: 1, local: 2, flags: 8 } as const;
/** IPv6 addresses that cannot be used: duplicate detection failed or is under way. */
const ifa_f_unusable = 0x08 | 0x40;

interface Address {
  readonly ifindex: number;
  readonly address: string;
}

/** The interface's own address; undefined for what is not usable (yet) or no IP. */
export function decodeAddress(body: Buffer): Address | undefined {
  const family = familyOf(body, address_header_bytes);
  if (family === undefined) return undefined;
  const attributes = readAttributes(body, address_header_bytes);
  const flags = uint32(attributes, ifa.flags) ?? body.readUInt8(2);
  if (family === 6 && (flags & ifa_f_unusable) !== 0) return undefined;
  // On a point-to-point link `address` is the far end.
  const bytes = attributes.get(ifa.local) ?? attributes.get(ifa.address);
  if (bytes?.length !== (family === 4 ? 4 : 16)) return undefined;
  return {
    ifindex: body.readUInt32LE(4),
    address: family === 4 ? bytes.join('.') : ipv6Text(bytes),
  };
}

/** `rtmsg`. */
const rta = { oif: 4, gateway: 5, priority: 6, multipath: 9, table: 15, nh_id: 30 } as const;
const rtn_unicast = 1;
/** Blackhole, unreachable, prohibit. */
const rtn_refusals: ReadonlySet<number> = new Set([6, 7, 8]);
const rtm_f_cloned = 0x200;
const rtnh_f_dead = 0x1;
const nexthop_bytes = 8;

/** The paths of a nexthop object (ip-nexthop(8)) by its id. */
type PathsOf = (nexthop_id: number) => readonly Path[];

/**
 * A default route of a table other than `local`; undefined for every other route. `pathsOf` resolves nexthop objects, which the
 * kernel names without their paths where `nexthop_compat_mode` is off.
 */
export function decodeDefaultRoute(body: Buffer, pathsOf: PathsOf = () => []): DefaultRoute | undefined {
  const family = familyOf(body, route_header_bytes);
  if (family === undefined || !isDefault(body)) return undefined;
  const attributes = readAttributes(body, route_header_bytes);
  const table = uint32(attributes, rta.table) ?? body.readUInt8(4);
  const type = body.readUInt8(7);
  const paths = type === rtn_unicast ? readPaths(attributes, body.readUInt32LE(8), pathsOf) : [];
  const isWay = paths.length > 0 || rtn_refusals.has(type);
  if (table === table_local || !isWay) return undefined;
  return { family, table, metric: uint32(attributes, rta.priority) ?? 0, paths };
}

/**
 * Of all destinations, and no entry of the kernel's route cache. Routers with several IPv6 providers (OpenWrt) give each its
 * default for the addresses of its prefix; a refusal of such addresses refuses no other traffic.
 */
function isDefault(body: Buffer): boolean {
  const [family, destination_bits = 0, source_bits = 0] = body;
  const isOfPrefix = source_bits > 0 && family === af_inet6 && body.readUInt8(7) === rtn_unicast;
  if (destination_bits > 0 || (source_bits > 0 && !isOfPrefix)) return false;
  return (body.readUInt32LE(8) & rtm_f_cloned) === 0;
}

/** The interface of a route to one host through a router; undefined for every other route. */
export function decodeHostRoute(body: Buffer): number | undefined {
  const family = familyOf(body, route_header_bytes);
  const [, destination_bits] = body;
  const isHost = family !== undefined && destination_bits === (family === 4 ? 32 : 128);
  const isUsed = isHost && body.readUInt8(7) === rtn_unicast && (body.readUInt32LE(8) & rtm_f_cloned) === 0;
  if (!isUsed) return undefined;
  const attributes = readAttributes(body, route_header_bytes);
  return attributes.has(rta.gateway) ? uint32(attributes, rta.oif) : undefined;
}

function readPaths(attributes: Attributes, flags: number, pathsOf: PathsOf): readonly Path[] {
  const hops = attributes.get(rta.multipath);
  if (hops) return readNexthops(hops);
  const ifindex = uint32(attributes, rta.oif);
  if (ifindex !== undefined) return [{ ifindex, weight: 1, alive: (flags & rtnh_f_dead) === 0 }];
  const nexthop_id = uint32(attributes, rta.nh_id);
  return nexthop_id === undefined ? [] : pathsOf(nexthop_id);
}

/** Whether a default route names a nexthop object in place of its paths. */
export function namesNexthop(body: Buffer): boolean {
  if (familyOf(body, route_header_bytes) === undefined || !isDefault(body)) return false;
  const attributes = readAttributes(body, route_header_bytes);
  return attributes.has(rta.nh_id) && !attributes.has(rta.oif) && !attributes.has(rta.multipath);
}

/** `nhmsg` (linux/nexthop.h). */
const nexthop_header_bytes = 8;
const nha = { id: 1, group: 2, oif: 5 } as const;
/** `nexthop_grp`: id, weight - 1. */
const group_entry_bytes = 8;

/** Resolves the nexthop objects of a dump; groups name other objects. */
export function nexthopPaths(bodies: readonly Buffer[]): PathsOf {
  const objects = new Map<number, { readonly attributes: Attributes; readonly flags: number }>();
  for (const body of bodies) {
    if (body.length < nexthop_header_bytes) continue;
    const attributes = readAttributes(body, nexthop_header_bytes);
    const id = uint32(attributes, nha.id);
    if (id !== undefined) objects.set(id, { attributes, flags: body.readUInt32LE(4) });
  }
  const single = (id: number, weight: number): readonly Path[] => {
    const object = objects.get(id);
    const ifindex = object && uint32(object.attributes, nha.oif);
    if (!object || ifindex === undefined) return [];
    return [{ ifindex, weight, alive: (object.flags & rtnh_f_dead) === 0 }];
  };
  return (id) => {
    const group = objects.get(id)?.attributes.get(nha.group);
    return group ? groupEntries(group).flatMap((entry) => single(entry.id, entry.weight)) : single(id, 1);
  };
}

function groupEntries(group: Buffer): readonly { readonly id: number; readonly weight: number }[] {
  const count = Math.floor(group.length / group_entry_bytes);
  return Array.from({ length: count }, (_, index) => {
    const at = index * group_entry_bytes;
    return { id: group.readUInt32LE(at), weight: group.readUInt8(at + 4) + 1 };
  });
}

function readNexthops(hops: Buffer): readonly Path[] {
  const paths: Path[] = [];
  for (let at = 0; at + nexthop_bytes <= hops.length;) {
    const length = hops.readUInt16LE(at);
    if (length < nexthop_bytes) break;
    paths.push({
      ifindex: hops.readUInt32LE(at + 4),
      weight: hops.readUInt8(at + 3) + 1,
      alive: (hops.readUInt8(at + 2) & rtnh_f_dead) === 0,
    });
    at += aligned(length);
  }
  return paths;
}

/** `fib_rule_hdr`. */
const fra = { priority: 6, fwmark: 10, suppress_prefixlen: 14, table: 15 } as const;
/** iif, oif, l3mdev, uid range, IP protocol, ports. */
const fra_conditions: readonly number[] = [3, 17, 19, 20, 22, 23, 24];
const fr_act_to_table = 1;
/** Blackhole, unreachable, prohibit. */
const fr_act_refusals: ReadonlySet<number> = new Set([6, 7, 8]);
const fib_rule_invert = 0x2;
const suppress_none = 0xff_ff_ff_ff;

/** A rule that looks into a table or refuses; undefined for the others (`goto`, `nop`) and for the local table. */
export function decodeRule(body: Buffer): Rule | undefined {
  const family = familyOf(body, rule_header_bytes);
  if (family === undefined) return undefined;
  const action = body.readUInt8(7);
  const refuses = fr_act_refusals.has(action);
  if (action !== fr_act_to_table && !refuses) return undefined;
  const attributes = readAttributes(body, rule_header_bytes);
  const table = refuses ? null : (uint32(attributes, fra.table) ?? body.readUInt8(4));
  if (table === table_local) return undefined;
  const suppress = uint32(attributes, fra.suppress_prefixlen) ?? suppress_none;
  return {
    family,
    priority: uint32(attributes, fra.priority) ?? 0,
    table,
    matches: matchesOf(body, attributes),
    skips_defaults: suppress !== suppress_none,
  };
}

function matchesOf(body: Buffer, attributes: Attributes): Rule['matches'] {
  const [, dst_len = 0, src_len = 0, tos = 0] = body;
  const hasConditions =
    dst_len + src_len + tos > 0 || fra_conditions.some((condition) => attributes.has(condition));
  const isMarked = (uint32(attributes, fra.fwmark) ?? 0) !== 0;
  // `not fwmark X`, as VPNs set it, matches unmarked packets; `not from X` for nearly everything.
  if ((body.readUInt32LE(8) & fib_rule_invert) !== 0) return hasConditions || isMarked ? 'all' : 'some';
  if (hasConditions) return 'some';
  return isMarked ? 'marked' : 'all';
}

/** AF_INET and AF_INET6; undefined for others and for a message that is too short. */
function familyOf(body: Buffer, header_bytes: number): Family | undefined {
  if (body.length < header_bytes) return undefined;
  if (body[0] === 2) return 4;
  return body[0] === 10 ? 6 : undefined;
}

const netlink_route = 0;
/** Of `nexthop` objects; beyond the range of bit operations. */
const nexthop_group = 0x8000_0000;
/** Links, of both families addresses, routes and rules, and nexthop objects. */
const groups = (0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x4_0000) + nexthop_group;

const tables = {
  addresses: { of: 'addresses', ask: 22, answer: 20, header_bytes: address_header_bytes },
  routes: { of: 'routes', ask: 26, answer: 24, header_bytes: route_header_bytes },
  nexthops: { of: 'nexthops', ask: 106, answer: 104, header_bytes: nexthop_header_bytes },
  rules: { of: 'rules', ask: 34, answer: 32, header_bytes: rule_header_bytes },
} as const;

/** Changes come in bursts: one reading for all of a burst. */
const settle_ms = 50;
/** How long one timer of the wait lasts; what is read then without news is the same, and a missed change is found. */
const wait_max_ms = 60_000;

interface RoutingWatch {
  readonly read: () => Routing;
  /** Resolves when the signal aborts; rejects with `DeviceUnreachable` when the kernel stops answering. */
  readonly done: Promise<void>;
}

interface WatchSpec {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  /** Names of interfaces in the configuration. */
  readonly names: readonly string[];
}

/** Reads once, then again after each change, calling `onChange`. Rejects with `DeviceUnreachable` without netlink. */
export async function watchRouting({ signal, onChange, names }: WatchSpec): Promise<RoutingWatch> {
  const news = new Wake();
  await listenNetlink({ protocol: netlink_route, groups, onNews: news.trigger, signal });
  const readRouting = await routingReader(names);
  let routing = await readRouting();
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      await news.wait(wait_max_ms, signal);
      await sleep(settle_ms, signal);
      if (signal.aborted) return;
      routing = await readRouting();
      onChange();
    }
  };
  const done = follow();
  // A waiting caller receives the failure; without one it must not be an unhandled rejection.
  done.catch(() => undefined);
  return { read: () => routing, done };
}

/**
 * Addresses of the internet, one in each quarter of IPv4 and three of IPv6: to these a machine has no routes of their own. Nothing is
 * sent there.
 */
const anywhere = [
  '4.0.0.1',
  '73.0.0.1',
  '133.0.0.1',
  '203.0.112.1',
  '2400::1',
  '2600::1',
  '2a00::1',
] as const;

async function routingReader(names: readonly string[]): Promise<() => Promise<Routing>> {
  const c = await libc();
  const wayOf = await wayFinder();
  const findWays = (): readonly Way[] => {
    const found = anywhere.flatMap((ip) => {
      const way = wayOf({ ip });
      return way ? [{ family: ip.includes(':') ? (6 as const) : (4 as const), ...way }] : [];
    });
    return [...new Map(found.map((way) => [`${way.family} ${way.ifindex}`, way])).values()];
  };
  const findNames = (): Routing['named'] =>
    new Map(
      names.flatMap((name) => {
        const ifindex = interfaceNamed(c, name);
        return ifindex === null ? [] : [[name, ifindex] as const];
      }),
    );
  return async () => ({ ...(await readTables()), ways: findWays(), named: findNames() });
}

async function readTables(): Promise<Omit<Routing, 'ways' | 'named'>> {
  const addresses = (await dumpTable(tables.addresses)).flatMap((body) => decodeAddress(body) ?? []);
  const listed_routes = await dumpTable(tables.routes);
  const pathsOf = nexthopPaths(listed_routes.some(namesNexthop) ? await dumpTable(tables.nexthops) : []);
  const routes = listed_routes.flatMap((body) => decodeDefaultRoute(body, pathsOf) ?? []);
  // A kernel without policy routing lists no rules.
  const listed = (await dumpTable(tables.rules)).flatMap((body) => decodeRule(body) ?? []);
  const byInterface = Map.groupBy(addresses, ({ ifindex }) => ifindex);
  return {
    routes,
    host_routed: [...new Set(listed_routes.flatMap((body) => decodeHostRoute(body) ?? []))],
    rules: listed.length > 0 ? listed : plain_rules,
    addresses: new Map([...byInterface].map(([ifindex, all]) => [ifindex, all.map((one) => one.address)])),
  };
}
