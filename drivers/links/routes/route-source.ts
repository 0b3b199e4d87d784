/** Where routes and addresses come from: netlink, else /proc at each reading. */
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import type { LinksOptions } from '../options.ts';
import { texts } from '../texts.ts';
import { type Routing, type DefaultRoute, plain_rules, table_main } from './routing.ts';
import { watchRouting } from './rtnetlink.ts';
import type { Nature } from '../interfaces/sysfs.ts';
import { readTextSync } from '../../../src/toolkit/device/system-files.ts';

export interface RouteSource {
  readonly kind: 'netlink' | 'proc';
  /** Throws what has ended the source. */
  readonly read: (natures: ReadonlyMap<string, Nature>) => Routing;
}

interface SourceSpec {
  readonly roots: LinksOptions['roots'];
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Names of interfaces in the configuration. */
  readonly names: readonly string[];
  /** Something changed, or the source has ended. */
  readonly onChange: () => void;
}

/** Netlink shows the network of this process: where other roots are configured, their /proc is read instead. */
export async function openRouteSource(spec: SourceSpec): Promise<RouteSource> {
  const { roots, signal, log, onChange, names } = spec;
  const isOwn = roots.proc === '/proc' && roots.sys === '/sys';
  if (!isOwn) return procSource(roots, false);
  try {
    const watch = await watchRouting({ signal, onChange, names });
    let failure: Error | undefined;
    watch.done.catch((error: unknown) => {
      failure = error instanceof Error ? error : new Error(messageOf(error));
      onChange();
    });
    const read = (): Routing => {
      if (failure) throw failure;
      return watch.read();
    };
    return { kind: 'netlink', read };
  } catch (error) {
    if (!signal.aborted) {
      const facts = { reason: messageOf(error) };
      log.warn(facts, texts.proc_routes_only);
    }
    return procSource(roots, true);
  }
}

function procSource({ proc }: LinksOptions['roots'], isOwn: boolean): RouteSource {
  return {
    kind: 'proc',
    read: (natures) => {
      const indexOf = (name: string): number | undefined => natures.get(name)?.ifindex;
      return procRouting(proc, indexOf, isOwn ? ownAddresses(indexOf) : null);
    },
  };
}

function ownAddresses(indexOf: (name: string) => number | undefined): ReadonlyMap<number, readonly string[]> {
  const entries = Object.entries(networkInterfaces()).flatMap(([name, all = []]) => {
    const ifindex = indexOf(name);
    return ifindex === undefined ? [] : [[ifindex, all.map(({ address }) => address)] as const];
  });
  return new Map(entries);
}

const rtf_up = 0x1;
const rtf_reject = 0x200;
const ipv4_any = '00000000';
const ipv6_any = '0'.repeat(32);

/**
 * The main table alone; /proc shows no other, nor rules, nor the weights of paths. `indexOf` returns the ifindex of a
 * name. Addresses are what the caller knows of them.
 */
export function procRouting(
  proc: string,
  indexOf: (name: string) => number | undefined,
  addresses: Routing['addresses'],
): Routing {
  const lines = (file: string): readonly string[] =>
    (readTextSync(join(proc, 'net', file)) ?? '').split('\n');
  const routes = [...lines('route').flatMap(parseIpv4), ...lines('ipv6_route').flatMap(parseIpv6)];
  return {
    routes: routes.flatMap(({ device, ...route }) => {
      const ifindex = indexOf(device);
      if (route.isRefusal) return [toRoute(route, [])];
      return ifindex === undefined ? [] : [toRoute(route, [ifindex])];
    }),
    host_routed: [],
    ways: [],
    named: new Map(),
    rules: plain_rules,
    addresses,
  };
}

interface Line {
  readonly family: 4 | 6;
  readonly device: string;
  readonly metric: number;
  readonly isRefusal: boolean;
}

function toRoute({ family, metric }: Omit<Line, 'device'>, indexes: readonly number[]): DefaultRoute {
  const paths = indexes.map((ifindex) => ({ ifindex, weight: 1, alive: true }));
  return { family, table: table_main, metric, paths };
}

/** `Iface Destination Gateway Flags RefCnt Use Metric Mask ...` */
function parseIpv4(line: string): readonly Line[] {
  const [device = '', destination, , flags = '', , , metric = '', mask] = line.trim().split(/\s+/u);
  if (destination !== ipv4_any || mask !== ipv4_any) return [];
  return toLine(4, device, Number.parseInt(flags, 16), Number(metric));
}

/** `destination prefix source prefix gateway metric refcnt use flags device` */
function parseIpv6(line: string): readonly Line[] {
  const [destination, prefix, , source_prefix, , metric = '', , , flag_text = '0', device = ''] = line
    .trim()
    .split(/\s+/u);
  const flags = Number.parseInt(flag_text, 16);
  if (destination !== ipv6_any || prefix !== '00') return [];
  // A refusal of one prefix refuses no other traffic.
  if (source_prefix !== '00' && (flags & rtf_reject) !== 0) return [];
  return toLine(6, device, flags, Number.parseInt(metric, 16));
}

function toLine(family: 4 | 6, device: string, flags: number, metric: number): readonly Line[] {
  if (!Number.isFinite(metric) || (flags & (rtf_up | rtf_reject)) === 0) return [];
  return [{ family, device, metric, isRefusal: (flags & rtf_reject) !== 0 }];
}
