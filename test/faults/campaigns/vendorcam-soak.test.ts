/** The short form of the soak of vendor cameras. */
import { it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { soak } from '../support/vendorcam-soak.ts';

it('a camera stays connected through restarts, unplugged cables and error replies', async () => {
  const before = sockets();
  await soak(8);
  await eventually('no socket is left open', () => sockets() <= before);
});

function sockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
}
