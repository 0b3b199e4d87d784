/** Caches the kernel's addresses, default routes and rules: reads all of them again after each change. */
import { listenNetlink } from '../../../src/platform/linux/netlink.ts';
import { dumpTable } from '../../../src/platform/linux/netlink-dump.ts';
import { sleep } from '../../../src/platform/time.ts';
import { Wake } from '../wake.ts';
import { plain_rules, type Routing } from './routing.ts';
import {
  address_header_bytes,
  decodeAddress,
  decodeDefaultRoute,
  decodeHostRoute,
  decodeRule,
  namesNexthop,
  nexthop_header_bytes,
  nexthopPaths,
  route_header_bytes,
  rule_header_bytes,
} from './decode.ts';

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

export interface RoutingWatch {
  readonly read: () => Routing;
  /** Resolves when the signal aborts; rejects with `DeviceUnreachable` when the kernel stops answering. */
  readonly done: Promise<void>;
}

/** Reads once, then again after each change, calling `onChange`. Rejects with `DeviceUnreachable` without netlink. */
export async function watchRouting(signal: AbortSignal, onChange: () => void): Promise<RoutingWatch> {
  const news = new Wake();
  await listenNetlink({ protocol: netlink_route, groups, onNews: news.trigger, signal });
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

async function readRouting(): Promise<Routing> {
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
