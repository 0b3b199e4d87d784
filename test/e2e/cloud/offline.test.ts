/** The broker is away: what the kit says meanwhile comes later, as history, and no number is missing without a word. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Heard } from '../../support/kit/cloud.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { type Proxy, startProxy } from '../../support/brokers/proxy.ts';
import { dropReport } from '../../../src/contract/drops.ts';
import { freePort } from '../../support/ports.ts';
import { firstNumber } from '../../support/witness.ts';

/** Drops are reported every ten seconds. */
const drops_reported_ms = 15_000;

describe.skipIf(peerMissing('mosquitto'))('a broker that is away when the kit starts', () => {
  let broker: Broker | undefined;
  let proxy: Proxy | undefined;
  afterEach(async () => {
    await proxy?.close();
    await broker?.stop();
  });

  it('gets everything once it is there, the past marked as history, and every hole explained', async () => {
    const peer = await startMosquitto();
    broker = peer;
    const port = await freePort();
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({
        broker: { url: `mqtt://127.0.0.1:${port}` },
        feeds: { rates_hz: { gps: 20 } },
        drivers: [kit.gateway, kit.rehearse({ gps_hz: 20, keys: ['falcon', 'eagle'] })],
      });
      const daemon = await kit.start();
      await daemon.printed(/broker unreachable; buffering/);
      await eventually('the drones report', async () => (await kit.status()).outbox.buffered > 20);
      // An asset that goes and comes back replaces what is retained of it, which leaves holes.
      await kit.machine.setPresent(false);
      await daemon.printed(/device is unavailable/);
      await kit.machine.setPresent(true);
      await daemon.printed(/device is back/);
      await eventually('some are in the buffer', async () => (await kit.status()).outbox.buffered > 50);
      const offline = await kit.status();
      expect(offline.uplink.state).toMatch(/^(waiting|connecting)$/);
      expect(offline.outbox).toMatchObject({ delivered: 0, balanced: true });
      expect(offline.degraded).toEqual([]);

      // The cloud subscribes before the kit can connect: a retained message would replace an earlier one otherwise.
      const cloud = await kit.listen(peer.url);
      proxy = await startProxy(peer.port, {}, port);
      await cloud.until('the birth', ({ channel }) => channel === 'state');
      const history = await cloud.until('history', ({ historical }) => historical);
      await cloud.until(
        'live again',
        ({ channel, historical }) => channel.startsWith('feed/') && !historical,
      );
      await eventually('the buffer is empty', async () => (await kit.status()).outbox.buffered < 50);
      expect(Date.parse(history.time)).toBeLessThan(Date.parse(cloud.heard[0]?.time ?? ''));
      await cloud.until('drops', ({ channel }) => channel === 'drops', drops_reported_ms);
      const isExplained = (): boolean => unexplained(cloud.heard).length === 0;
      await cloud.until('every hole is explained', isExplained, drops_reported_ms);
      expect(holes(cloud.heard).length).toBeGreaterThan(0);

      await daemon.end('SIGTERM');
      await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      const positions = cloud.on(`feed/${kit.drone()}/gps`);
      expect(positions.filter(({ historical }) => historical).length).toBeGreaterThan(20);
      expect(positions.filter(({ historical }) => !historical).length).toBeGreaterThan(0);
    });
  });
});

/** Numbers between the first and the highest that did not come. */
function holes(heard: readonly Heard[]): readonly number[] {
  const came = new Set(heard.filter(({ channel }) => channel !== 'state').map(({ seq }) => seq));
  const first = firstNumber(came);
  const all = Array.from({ length: Math.max(...came) - first + 1 }, (_, at) => first + at);
  return all.filter((seq) => !came.has(seq));
}

/** Holes outside the reported ranges; all of them when there are more than were reported. */
function unexplained(heard: readonly Heard[]): readonly number[] {
  const drops = heard
    .filter(({ channel }) => channel === 'drops')
    .flatMap(({ data }) => dropReport.parse(data).drops);
  const missing = holes(heard);
  if (missing.length > drops.reduce((sum, { rows }) => sum + rows, 0)) return missing;
  return missing.filter((seq) => !drops.some(({ lo, hi }) => lo <= seq && seq <= hi));
}
