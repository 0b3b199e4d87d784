/** Which authorities of TLS certificates are trusted where a configuration names none: those of the system. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

let isDone = false;

/**
 * Makes the authorities of the system, and those of `NODE_EXTRA_CA_CERTS`, the ones of this process; Node.js brings a list of
 * its own and would not look at the system's. A system without any leaves that list in place. Costs 4 MB and a tenth of a
 * second, so it is done at the first connection that needs it.
 */
export function trustSystemAuthorities(): void {
  if (isDone) return;
  isDone = true;
  const system = getCACertificates('system');
  if (system.length > 0) setDefaultCACertificates([...new Set([...system, ...getCACertificates('extra')])]);
}
