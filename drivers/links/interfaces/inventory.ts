/** Decides which interfaces are WAN links: by the configuration, by the default routes, by what they are, by memory. Pure. */
import { join } from 'node:path';
import { wans_max, type LinkType } from '../../../src/contract/kit.ts';
import { type InterfaceState, type Nature, arphrd } from './sysfs.ts';
import { readTextSync } from '../../../src/toolkit/device/system-files.ts';

/** Kernel drivers of modems whose interfaces otherwise look like Ethernet. */
const modem_drivers: ReadonlySet<string> = new Set([
  'qmi_wwan',
  'cdc_mbim',
  'huawei_cdc_ncm',
  'rndis_host',
  'mhi_net',
  'mhi_wwan_mbim',
  'iosm',
  'option',
]);

/** IPIP, IP6 in IP6, SIT, GRE, GRE over IPv6. */
const tunnel_kinds: ReadonlySet<number> = new Set([768, 769, 776, 778, 823]);
const tunnel_devtypes: ReadonlySet<string> = new Set(['wireguard', 'vxlan', 'geneve', 'macsec']);

/** The names that modems and telephones get; the last resort. */
const cellular_name = /^(?:wwan|rmnet|mhi_hwip|ppp|usb\d)/u;
const wifi_name = /^wl(?:an|[a-z]\d|x)/u;

/** It carries traffic inside the traffic of another interface. */
export function isTunnel({ kind, devtype, isTun }: Nature): boolean {
  return isTun || tunnel_kinds.has(kind ?? 0) || tunnel_devtypes.has(devtype ?? '');
}

/** A modem is a WAN also while it has no route, since it is never anything else. */
function isModem({ kind, devtype, driver, isHardware }: Nature): boolean {
  return isHardware && (devtype === 'wwan' || kind === arphrd.raw_ip || modem_drivers.has(driver ?? ''));
}

function isLoopback({ kind }: Nature): boolean {
  return kind === arphrd.loopback;
}

/** The kernel's word first, the name last. `pppoe`: PPP interfaces that run over Ethernet, not over a modem. */
export function typeOf(nature: Nature, pppoe: ReadonlySet<string>): LinkType {
  if (nature.isWireless) return 'wifi';
  if (nature.kind === arphrd.ppp && pppoe.has(nature.name)) return 'ethernet';
  if (isModem(nature) || nature.kind === arphrd.ppp || nature.kind === arphrd.raw_ip) return 'cellular';
  return typeByName(nature.name);
}

/** For an interface that is not there. */
export function typeByName(name: string): LinkType {
  if (cellular_name.test(name)) return 'cellular';
  return wifi_name.test(name) ? 'wifi' : 'ethernet';
}

/** Ethernet's 1,500 bytes without the headers of PPPoE (RFC 2516); a modem has no reason for so odd a size. */
const pppoe_mtu_max = 1_492;

interface Pppoe {
  /** Ports below the sessions. */
  readonly devices: readonly string[];
  /** PPP interfaces of the sessions. */
  readonly links: ReadonlySet<string>;
}

/** The device of each session in /proc/net/pppoe: `Id Address Device`, a line each. Without the kernel module there are none. */
function sessionDevices(proc: string): readonly string[] {
  const lines = (readTextSync(join(proc, 'net/pppoe')) ?? '').split('\n').slice(1);
  return lines.flatMap((line) => line.trim().split(/\s+/u)[2] ?? []);
}

/**
 * The kernel does not report which session belongs to which PPP interface. Where there are more interfaces than sessions, the
 * names of OpenWrt (`pppoe-wan`, `3g-wan`) decide first, then the MTU.
 */
export function readPppoe(
  proc: string,
  natures: ReadonlyMap<string, Nature>,
  stateOf: (name: string) => InterfaceState,
): Pppoe {
  const sessions = sessionDevices(proc);
  if (sessions.length === 0) return { devices: [], links: new Set() };
  const likely = [...natures.values()]
    .filter(({ kind }) => kind === arphrd.ppp)
    .map(({ name }) => ({ name, likeness: likeness(name, stateOf(name).mtu) }))
    .toSorted((a, b) => b.likeness - a.likeness);
  const found = likely.slice(0, sessions.length).map(({ name }) => name);
  return { devices: [...new Set(sessions)], links: new Set(found) };
}

function likeness(name: string, mtu: number | undefined): number {
  const by_name = name.startsWith('pppoe') ? 2 : /^(?:[345]g|wwan|lte|modem)/u.test(name) ? -2 : 0;
  return by_name + (mtu !== undefined && mtu <= pppoe_mtu_max ? 1 : 0);
}

/** Links that were WAN links and are not by what the machine shows now: each message of the kit lists all links, over links that may be metered. */
export const former_max = 8;

interface Present {
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

interface Evidence {
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
