/** A broker, or a balancer before it, that accepts every connection and ends it at once. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, everythingArrives, withLab } from '../support/lab.ts';

/** With pauses from 0.2 s to 2 s, halved at most by chance: 0.1 + 0.2 + 0.4 + 0.8 + 1 + 1 s, then 1 s each. */
const attemptsWithin = (ms: number): number => 7 + Math.max(0, Math.ceil((ms - 3_000) / 1_000));

describe.skipIf(peerMissing('mosquitto'))('a broker that accepts and kicks', () => {
  it('is not stormed: the pauses grow although each connection was accepted', { tags: 'long' }, async () => {
    await withLab({}, async (lab) => {
      const subscriber = await lab.subscribe();
      lab.proxy.setAdmission('kick');
      const start_ms = performance.now();
      const connector = await lab.start();
      lab.produce(connector, ['feed', 'alarm'], 100);
      await eventually('messages wait', () => connector.outbox.ledger().accepted >= 300);
      // A busy machine takes its time for the start, and lets the pause last longer.
      const { accepted } = lab.proxy.counters;
      expect(accepted).toBeGreaterThan(1);
      expect(accepted).toBeLessThanOrEqual(attemptsWithin(performance.now() - start_ms));
      lab.proxy.setAdmission('pass');
      await connected(connector);
      expect(connector.outbox.ledger().dropped).toEqual({});
      const arrived = await subscriber.until(({ unique }) => unique >= 300);
      expect(arrived.unique).toBeGreaterThanOrEqual(300);
    });
  });

  it('refuses and comes back: everything accepted meanwhile arrives', async () => {
    await withLab({}, async (lab) => {
      const subscriber = await lab.subscribe();
      lab.proxy.setAdmission('refuse');
      const connector = await lab.start();
      for (let n = 0; n < 500; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      await eventually('it was refused twice', () => connector.uplink.status().attempts > 2);
      lab.proxy.setAdmission('pass');
      await everythingArrives(connector, subscriber);
      expect(connector.outbox.ledger()).toMatchObject({ accepted: 500, delivered: 500 });
    });
  });
});
