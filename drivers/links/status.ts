/** The status of one link and the reason for it, from what is known of its interface, its routes and its answers. Pure. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { LinkCause, LinkStatus, Link } from '../../src/contract/kit.ts';
import type { InterfaceState } from './interfaces/sysfs.ts';
import { texts } from './texts.ts';
import { isExampleIp, isPublicIp } from '../../src/platform/public-ip.ts';
import type { DataCap } from '../../src/contract/feeds.ts';
import type { Family } from '../../src/platform/linux/socket-address.ts';

export interface LinkFacts {
  /** Null: the interface is not there. */
  readonly state: InterfaceState | null;
  /** Null: they cannot be known. */
  readonly addresses: readonly string[] | null;
  /** A default route of some table leads through it. */
  readonly isRouted: boolean;
  /** Unmarked traffic uses it, or the configuration marks it as balanced. */
  readonly isSelected: boolean;
  /** It carries a tunnel that has all of the traffic, so nothing but the server of the tunnel can answer over it. */
  readonly isBelowTunnel: boolean;
  /** What becomes of unmarked traffic of this machine: some link carries it, a default route refuses it, or none leads out. */
  readonly traffic: 'carried' | 'refused' | 'unrouted';
  /** Routes or rules refuse all traffic of this machine in the families of what is asked. */
  readonly isRefused: boolean;
  /** Null: no targets, or no verdict yet. */
  readonly reachable: boolean | null;
  /** What is asked over the link; empty: nothing, or nothing that it has a family for. */
  readonly asked: readonly string[];
  /** Families of what is configured in which nothing leaves by it, so that it is not asked there. */
  readonly missing: readonly Family[];
  /** The verdict of the prober or the checker. */
  readonly probe_reason: string | null;
  readonly decided_by: 'probes' | 'checks';
}

export interface LinkState {
  /** Undefined: not known yet. */
  readonly status: LinkStatus | undefined;
  readonly reason: string | null;
  /** Only of a link that is offline. */
  readonly cause?: LinkCause;
}

/** Why nothing can pass. */
interface LinkFault {
  readonly reason: string;
  readonly cause: LinkCause;
}

/**
 * `offline`: cannot carry anything, or no target answers. `online`: answers, and traffic uses it. `standby`: answers,
 * and traffic uses another link. Without targets the answers are assumed, and the reason states it.
 */
export function judge(facts: LinkFacts): LinkState {
  const fault = faultOf(facts);
  if (fault !== null) return { status: 'offline', ...fault };
  const caveat = caveatOf(facts);
  if (caveat === null && facts.reachable === null)
    return { status: undefined, reason: facts.probe_reason ?? texts.first_probes };
  const remark = caveat ?? remarkOf(facts);
  if (facts.isSelected) return { status: 'online', reason: remark };
  if (facts.traffic === 'refused')
    return { status: 'offline', reason: texts.traffic_refused, cause: 'no_route' };
  if (facts.traffic === 'unrouted' && !facts.isRouted)
    return { status: 'offline', reason: texts.no_default_route, cause: 'no_route' };
  const reason = facts.traffic === 'carried' ? texts.other_link_selected : texts.marked_traffic_only;
  return { status: 'standby', reason: remark === null ? reason : `${reason}; ${remark}` };
}

/** Why its answers are assumed; null: they are asked for. */
function caveatOf({ asked, missing, isBelowTunnel, reachable }: LinkFacts): string | null {
  if (isBelowTunnel && reachable === null) return texts.below_tunnel;
  if (asked.length > 0) return null;
  return missing.length > 0 ? texts.none_of_its_family(familyNames(missing)) : texts.not_probed;
}

/** Most links lack IPv6, which is no news. */
function remarkOf({ missing }: LinkFacts): string | null {
  return missing.includes(4) ? texts.family_missing(familyNames([4])) : null;
}

function familyNames(families: readonly Family[]): string {
  return families.map((family) => `IPv${family}`).join(' and ');
}

/** Why nothing can pass; null when something could. */
function faultOf(facts: LinkFacts): LinkFault | null {
  const { state, addresses, isRouted, reachable, asked } = facts;
  const fault = interfaceFault(state, addresses);
  if (fault !== null) return fault;
  if (asked.length > 0 && reachable === false) return unansweredFault(facts);
  // An answer is better evidence than the tables.
  return isRouted || reachable ? null : { reason: texts.no_default_route, cause: 'no_route' };
}

function unansweredFault({
  isRouted,
  asked,
  missing,
  traffic,
  isRefused,
  probe_reason,
  decided_by,
}: LinkFacts): LinkFault {
  const reason = probe_reason ?? texts.no_target_answers;
  if (decided_by === 'checks') return { reason, cause: 'wrong_answer' };
  // Its own traffic has no way out: what the probes met follows from that.
  if (traffic === 'refused' || isRefused) return { reason: texts.traffic_refused, cause: 'no_route' };
  if (!isRouted) return { reason: texts.no_default_route, cause: 'no_route' };
  const probed = texts.probed(reason, asked.join(', '));
  const others = missing.length > 0 ? `; ${texts.family_missing(familyNames(missing))}` : '';
  return { reason: `${probed}${others}`, cause: 'no_answer' };
}

/**
 * When a status began, at the reading that shows it. Where answers decide, a link is offline from its last one and back with its
 * first: `since_ms` of the answers. `before_ms`: when the status before began; `cause`: why it is offline, or was.
 */
export function beganAt(
  since_ms: number | null,
  cause: LinkCause | null | undefined,
  { before_ms, now_ms }: { readonly before_ms: number | undefined; readonly now_ms: number },
): number {
  const byAnswers = cause === 'no_answer' || cause === 'wrong_answer';
  if (!byAnswers || since_ms === null || since_ms <= (before_ms ?? Number.NEGATIVE_INFINITY)) return now_ms;
  return Math.min(since_ms, now_ms);
}

/** Why the interface itself carries nothing; null: it could. */
export function interfaceFault(
  state: InterfaceState | null,
  addresses: LinkFacts['addresses'],
): LinkFault | null {
  const fault = stateFault(state);
  if (fault !== null || addresses === null || isConfigured(addresses)) return fault;
  return { reason: texts.no_address, cause: 'no_address' };
}

function stateFault(state: InterfaceState | null): LinkFault | null {
  if (!state) return { reason: texts.interface_missing, cause: 'removed' };
  if (state.isUp === false) return { reason: texts.interface_down, cause: 'switched_off' };
  if (!state.carrier) return { reason: texts.no_carrier, cause: 'no_carrier' };
  const { operstate = 'unknown' } = state;
  // Modems, PPP and tunnels always leave it at "unknown".
  if (operstate === 'up' || operstate === 'unknown') return null;
  return { reason: texts.not_connected(operstate), cause: 'not_connected' };
}

/** Addresses that lead nowhere beyond the wire they are on. */
const wire_only = new BlockList();
wire_only.addSubnet('127.0.0.0', 8, 'ipv4');
wire_only.addSubnet('169.254.0.0', 16, 'ipv4');
wire_only.addAddress('::1', 'ipv6');
wire_only.addSubnet('fe80::', 10, 'ipv6');

/** Whether traffic could leave the wire with one of these addresses. */
export function isConfigured(addresses: readonly string[]): boolean {
  return addresses.some((address) => !wire_only.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'));
}

/** The public address among an interface's own, IPv4 first; null when it is behind a NAT. */
export function ownPublicAddress(addresses: readonly string[]): string | null {
  // No server ever sees an example address, so that an interface's word for one is no proof.
  const ours = addresses.filter((address) => isPublicIp(address) && !isExampleIp(address));
  return ours.find((address) => isIPv4(address)) ?? ours[0] ?? null;
}

/** A link as the table shows it. */
export interface TableLink {
  readonly link: Link;
  readonly reason: string | null;
  readonly cause: LinkCause | null;
  readonly cap: DataCap | null;
  /** When the answers that its status rests on began or ended; null: not known. Monotonic. */
  readonly since_ms: number | null;
  /** The kit is degraded by it: traffic stays on this dead link. Null: it does not. */
  readonly weakness: string | null;
}
