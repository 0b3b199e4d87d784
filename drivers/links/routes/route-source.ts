/** Where routes and addresses come from: netlink, else /proc at each reading. */
import { networkInterfaces } from 'node:os';
import type { DriverLog } from '../../../src/driver/driver.ts';
import { messageOf } from '../../../src/errors.ts';
import type { LinksOptions } from '../options.ts';
import { texts } from '../texts.ts';
import { procRouting } from './proc-routes.ts';
import type { Routing } from './routing.ts';
import { watchRouting } from './rtnetlink.ts';
import type { Nature } from '../interfaces/sysfs.ts';

export interface RouteSource {
  readonly kind: 'netlink' | 'proc';
  /** Throws what has ended the source. */
  readonly read: (natures: ReadonlyMap<string, Nature>) => Routing;
}

interface SourceSpec {
  readonly roots: LinksOptions['roots'];
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Something changed, or the source has ended. */
  readonly onChange: () => void;
}

/** Netlink shows the network of this process: where other roots are configured, their /proc is read instead. */
export async function openRouteSource(spec: SourceSpec): Promise<RouteSource> {
  const { roots, signal, log, onChange } = spec;
  const isOwn = roots.proc === '/proc' && roots.sys === '/sys';
  if (!isOwn) return procSource(roots, false);
  try {
    const watch = await watchRouting(signal, onChange);
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
