/** The status of one link and the reason for it, from what is known of its interface, its routes and its answers. Pure. */
import type { LinkStatus } from '../../src/contract/kit.ts';
import { isConfigured } from './interfaces/addresses.ts';
import type { InterfaceState } from './interfaces/sysfs.ts';

export interface Signs {
  /** Null: the interface is not there. */
  readonly state: InterfaceState | null;
  /** Null: they cannot be known. */
  readonly addresses: readonly string[] | null;
  /** A default route of some table leads through it. */
  readonly isRouted: boolean;
  /** Unmarked traffic leaves by it, or the configuration marks it as balanced. */
  readonly isSelected: boolean;
  /** Null: no targets, or no verdict yet. */
  readonly reachable: boolean | null;
  /** Addresses that are probed through the link; empty: none configured. */
  readonly asked: readonly string[];
  /** What the prober says. */
  readonly probe_reason: string | null;
}

export interface Verdict {
  /** Undefined: not known yet. */
  readonly status: LinkStatus | undefined;
  readonly reason: string | null;
}

export const not_probed = 'answers are not checked: options.probe.targets is empty';

/**
 * `offline`: cannot carry anything, or no target answers. `online`: answers, and traffic leaves by it. `standby`: answers,
 * and traffic leaves by another link. Without targets the answers are assumed, and the reason states it.
 */
export function judge(signs: Signs): Verdict {
  const fault = faultOf(signs);
  if (fault !== null) return { status: 'offline', reason: fault };
  const { reachable, asked, isSelected, probe_reason } = signs;
  const isProbed = asked.length > 0;
  if (isProbed && reachable === null)
    return { status: undefined, reason: probe_reason ?? 'the first probes are under way' };
  const caveat = isProbed ? null : not_probed;
  if (isSelected) return { status: 'online', reason: caveat };
  const waiting = 'traffic leaves by another link';
  return { status: 'standby', reason: caveat === null ? waiting : `${waiting}; ${caveat}` };
}

/** Why nothing can pass; null when something could. */
function faultOf({ state, addresses, isRouted, reachable, asked, probe_reason }: Signs): string | null {
  const fault = interfaceFault(state);
  if (fault !== null) return fault;
  if (addresses !== null && !isConfigured(addresses)) return 'no address';
  if (asked.length > 0 && reachable === false) {
    return `${probe_reason ?? 'no target answers'}; probed ${asked.join(', ')}`;
  }
  // An answer is better evidence than the tables.
  return isRouted || reachable ? null : 'no default route leads through it';
}

function interfaceFault(state: InterfaceState | null): string | null {
  if (!state) return 'the interface is not there';
  if (state.isUp === false) return 'the interface is switched off';
  if (!state.carrier) return 'no carrier: check cable, dish or modem';
  const { operstate = 'unknown' } = state;
  // Modems, PPP and tunnels always leave it at "unknown".
  return operstate === 'up' || operstate === 'unknown' ? null : `not connected (${operstate})`;
}
