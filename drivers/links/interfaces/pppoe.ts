/** Which PPP interfaces run over Ethernet, and on which port: the others belong to modems. */
import { join } from 'node:path';
import { readTextSync } from '../../../src/device/system-files.ts';
import { arphrd, type InterfaceState, type Nature } from './sysfs.ts';

/** Ethernet's 1,500 bytes without the headers of PPPoE (RFC 2516); a modem has no reason for so odd a size. */
const pppoe_mtu_max = 1_492;

export interface Pppoe {
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
