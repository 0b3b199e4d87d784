/** Asks the kernel which way it would send a packet (RTM_GETROUTE of rtnetlink(7)), and reports changes of its tables. */
import { sleep } from '../time.ts';
import { libc } from './libc.ts';
import { askNetlink, attribute, isRunning, listenNetlink, readAttributes, uint32 } from './netlink.ts';
import { deviceName } from './bound-fd.ts';
import { canonicalIp, encodeSocketAddress, familyOf, type Family, ipv6Text } from './socket-address.ts';

/** The way of a packet. */
export interface Route {
  readonly ifindex: number;
  /** Interface name; null when the interface is gone again. */
  readonly interface: string | null;
  /** Address that a new connection on this way would have; null: the kernel states none. */
  readonly source_ip: string | null;
}

export interface RouteQuery {
  readonly ip: string;
  /** The packet's own address; left out: the kernel chooses, as for a new connection. */
  readonly source_ip?: string | undefined;
}

/** What the kernel answers for a packet, without the name of the interface. */
export interface Way {
  readonly ifindex: number;
  /** Routing table in which the kernel found it. */
  readonly table: number;
  /** The packet goes to a router, not straight to its receiver. */
  readonly hasRouter: boolean;
  readonly source_ip: string | null;
}

/** The kernel's routing, as the uplink uses it. */
export interface Routes {
  /** Null: no way leads there, or not with this source. Rejects with `DeviceUnreachable` or `TypeError`. */
  readonly find: (query: RouteQuery) => Promise<Route | null>;
  /** Calls `onChange` after each burst of changes until `signal` aborts. Rejects with `DeviceUnreachable` without netlink. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => Promise<void>;
}

const netlink_route = 0;
/** Links, and of both families addresses, routes and rules. */
const groups = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x4_0000;
const settle_ms = 50;

const message = { get_route: 26, new_route: 24 } as const;
const route_header_bytes = 12;
/** Offset of `rtm_flags`, and the flag that asks for the table in which the route stands. */
const flags_at = 8;
const rtm_f_lookup_table = 0x1000;
const rta = { dst: 1, src: 2, oif: 4, gateway: 5, prefsrc: 7, table: 15, via: 18 } as const;
const family_number: Readonly<Record<Family, number>> = { 4: 2, 6: 10 };

export const kernelRoutes: Routes = { find: findRoute, watch: watchRoutes };

async function findRoute(query: RouteQuery): Promise<Route | null> {
  const way = (await wayFinder())(query);
  if (way === null) return null;
  const { ifindex, source_ip } = way;
  // Without a carrier a route that nobody removes leads nowhere.
  if (!isRunning(await libc(), ifindex)) return null;
  return { ifindex, interface: await deviceName(ifindex), source_ip };
}

/** Loads the functions once; each question is synchronous then. Null: no way leads there, or not with this source. */
export async function wayFinder(): Promise<(query: RouteQuery) => Way | null> {
  const c = await libc();
  return ({ ip, source_ip }) => {
    const family = familyOf(ip);
    if (family === null) return null;
    const usesSource = source_ip !== undefined && familyOf(source_ip) === family;
    const answer = askNetlink(c, request(family, ip, usesSource ? source_ip : undefined));
    if (answer === null) return null;
    const attributes = readAttributes(answer, route_header_bytes);
    const ifindex = uint32(attributes, rta.oif);
    if (ifindex === undefined) return null;
    const bytes = attributes.get(rta.prefsrc);
    const stated = bytes === undefined ? null : family === 4 ? bytes.join('.') : ipv6Text(bytes);
    return {
      ifindex,
      table: uint32(attributes, rta.table) ?? answer.readUInt8(4),
      hasRouter: attributes.has(rta.gateway) || attributes.has(rta.via),
      source_ip: stated ?? (usesSource ? canonicalIp(source_ip) : null),
    };
  };
}

function request(family: Family, ip: string, source_ip: string | undefined) {
  const attributes = [attribute(rta.dst, addressBytes(ip))];
  if (source_ip !== undefined) attributes.push(attribute(rta.src, addressBytes(source_ip)));
  const header = Buffer.alloc(route_header_bytes);
  const bits = family === 4 ? 32 : 128;
  header[0] = family_number[family];
  header[1] = bits;
  header[2] = source_ip === undefined ? 0 : bits;
  header.writeUInt32LE(rtm_f_lookup_table, flags_at);
  return { ask: message.get_route, answer: message.new_route, header, attributes };
}

/** The address within `sockaddr_in` or `sockaddr_in6`. */
function addressBytes(ip: string): Uint8Array {
  const address = encodeSocketAddress(ip, 0);
  return familyOf(ip) === 4 ? address.subarray(4, 8) : address.subarray(8, 24);
}

async function watchRoutes(onChange: () => void, signal: AbortSignal): Promise<void> {
  let isDue = false;
  const settle = async (): Promise<void> => {
    await sleep(settle_ms, signal);
    isDue = false;
    if (!signal.aborted) onChange();
  };
  const onNews = (): void => {
    if (isDue) return;
    isDue = true;
    void settle();
  };
  await listenNetlink({ protocol: netlink_route, groups, onNews, signal });
}
