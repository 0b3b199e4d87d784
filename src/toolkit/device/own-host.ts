/** The addresses and names of this machine. */
import { hostname, networkInterfaces } from 'node:os';
import { mayBeThisMachine, plainHost } from '../driver/device-address.ts';

/** Whether the host is this gateway itself: its loopback in any spelling, or one of its addresses and names. */
export function isOwnHost(host: string): boolean {
  return mayBeThisMachine(host) || ownHosts().includes(plainHost(host));
}

function ownHosts(): readonly string[] {
  const name = hostname().toLowerCase();
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  return [name, `${name}.local`, ...addresses.map(({ address }) => plainHost(address))];
}
