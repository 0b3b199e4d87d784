/** Decides which interfaces are WAN links: by the configuration, by the default routes, by what they are, by memory. Pure. */
import { wans_max } from '../../../src/contract/kit.ts';
import { isLoopback, isModem, isTunnel } from './classify.ts';
import type { Pppoe } from './pppoe.ts';
import type { InterfaceState, Nature } from './sysfs.ts';

/** Links that were WAN links and are not by what the machine shows now: each message of the kit lists all links, over links that may be metered. */
export const former_max = 8;

export interface Present {
  readonly nature: Nature;
  readonly state: InterfaceState;
}

export interface Wan {
  readonly name: string;
  /** Null: it is not there. */
  readonly present: Present | null;
  /** Found by what the machine shows now; the others are configured or remembered. */
  readonly isEvident: boolean;
  /** A listed link that stands on this one: its bytes are counted there. */
  readonly counted_on: string | null;
}

export interface Evidence {
  readonly natures: ReadonlyMap<string, Nature>;
  readonly stateOf: (name: string) => InterfaceState;
  /** Interfaces with a default route in any table. */
  readonly routed: ReadonlySet<number>;
  /** The same, in the order in which traffic would take them. */
  readonly order: readonly number[];
  readonly pppoe: Pppoe;
  readonly configured: readonly string[];
  readonly ignored: readonly string[];
  /** Names that were WAN links before, those seen last first. */
  readonly remembered: readonly string[];
}

/**
 * A WAN link is what the configuration names, what a default route leads through, what is a modem, and what was one of
 * these before. Loopback, tunnels and members of bridges and bonds are none unless configured, nor is what another link
 * stands on (the port below a VLAN or PPPoE, the modem below a multiplexed connection) without its own route. At most `wans_max`, in this
 * order, those in use first; the names of the others are in `left_out`, but for former ones, of which the last `former_max` are listed.
 */
export function findWans(evidence: Evidence): {
  readonly wans: readonly Wan[];
  readonly left_out: readonly string[];
} {
  const { natures, order, configured, remembered } = evidence;
  const rank = ({ ifindex }: Nature): number =>
    order.includes(ifindex) ? order.indexOf(ifindex) : order.length;
  const evident = [...natures.values()]
    .filter((nature) => isEvident(nature, evidence))
    .toSorted((a, b) => rank(a) - rank(b))
    .map(({ name }) => name);
  const current = new Set([...configured, ...evident]);
  const former = remembered.filter((name) => !current.has(name) && isAllowed(name, evidence));
  const names = [...current, ...former.slice(0, former_max)].filter((name) => isAllowed(name, evidence));
  const present = new Map(names.flatMap((name) => presentOf(name, evidence)));
  const uppers = uppersOf(present, evidence);
  const found = names.filter(
    (name) => configured.includes(name) || !uppers.has(name) || isRouted(name, evidence),
  );
  const wans = found.slice(0, wans_max).map((name) => ({
    name,
    present: present.get(name) ?? null,
    isEvident: evident.includes(name),
    counted_on: uppers.get(name) ?? null,
  }));
  return { wans, left_out: found.slice(wans_max) };
}

function isRouted(name: string, { natures, routed }: Evidence): boolean {
  const nature = natures.get(name);
  return nature !== undefined && routed.has(nature.ifindex);
}

/** A modem on PCIe has an interface for data in hardware and one in software, of which the second carries nothing beside the first. */
function isSparePath({ name }: Nature, { natures }: Evidence): boolean {
  const number = /^mhi_swip(\d+)$/u.exec(name)?.[1];
  return number !== undefined && natures.has(`mhi_hwip${number}`);
}

function isEvident(nature: Nature, evidence: Evidence): boolean {
  const { routed, stateOf } = evidence;
  const isWaitingModem = isModem(nature) && !isSparePath(nature, evidence);
  const isCandidate = routed.has(nature.ifindex) || isWaitingModem;
  return isCandidate && !isLoopback(nature) && !isTunnel(nature) && !stateOf(nature.name).hasMaster;
}

/** What was a WAN link may have been made a port of the LAN since. */
function isAllowed(name: string, { natures, stateOf, configured, ignored }: Evidence): boolean {
  if (ignored.includes(name)) return false;
  const nature = natures.get(name);
  if (configured.includes(name) || !nature) return true;
  return !isLoopback(nature) && !isTunnel(nature) && !stateOf(name).hasMaster;
}

function presentOf(name: string, { natures, stateOf }: Evidence): readonly (readonly [string, Present])[] {
  const nature = natures.get(name);
  return nature ? [[name, { nature, state: stateOf(name) }]] : [];
}

/** By the name of a port, the listed link that stands on it. */
function uppersOf(present: ReadonlyMap<string, Present>, { pppoe }: Evidence): ReadonlyMap<string, string> {
  const uppers = new Map<string, string>();
  for (const [name, { state }] of present) {
    for (const lower of state.lowers) uppers.set(lower, name);
    if (pppoe.links.has(name)) for (const lower of pppoe.devices) uppers.set(lower, name);
  }
  return uppers;
}
