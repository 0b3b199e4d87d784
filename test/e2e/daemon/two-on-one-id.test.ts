/** Two gateways flashed from one card: both end each other's session, and each says so wherever a technician looks. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../src/kit/uplink/texts.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('mosquitto'))('two daemons with one kit_id', () => {
  it('name each other in the log, the status and the doctor', { timeout: 180_000 }, async () => {
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: false }, async (kit) => {
        await kit.configure({ broker: { url: broker.url }, drivers: [kit.gateway] });
        const daemon = await kit.start();
        const twin_file = join(kit.dir, 'twin.yaml');
        const dirs = { state_dir: join(kit.dir, 'twin-state'), runtime_dir: join(kit.dir, 'twin-run') };
        const settings = { kit_id: kit.kit_id, clock: 'trusted', broker: { url: broker.url }, ...dirs };
        await writeFile(twin_file, JSON.stringify(settings));
        const twin = startChild([command_file, 'run', '--config', twin_file]);
        try {
          // Some brokers name the takeover (0x8e), others only hang up again and again.
          const lines = new Set<string>([texts.another_client, texts.short_connections]);
          const isNamed = (): boolean => daemon.log().some(({ msg }) => lines.has(msg));
          await eventually('the log names it', isNamed, 90_000);
          const { degraded } = await kit.status();
          expect(degraded.join('\n')).toMatch(/another client uses this kit_id/u);
          const { stdout } = await kit.run('doctor');
          expect(stdout).toMatch(/another client uses this kit_id/u);
        } finally {
          twin.send('SIGKILL');
          await twin.ended;
        }
      });
    } finally {
      await broker.stop();
    }
  });
});
