/** A link that dies without a word: no reset, no end, only silence. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, everythingArrives, withLab } from '../support/lab.ts';

const noticed_within_ms = 5_500;

describe.skipIf(peerMissing('mosquitto'))('a broker that falls silent', () => {
  it('is noticed within five seconds while messages flow, and nothing is lost when the link is back', async () => {
    await withLab({}, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      const stop = lab.produce(connector, ['feed', 'alarm'], 50);
      await eventually('messages flow', () => connector.acknowledged > 10);
      lab.proxy.stall();
      await eventually('the silence is noticed', () => !connector.uplink.online, noticed_within_ms);
      lab.proxy.cut();
      await connected(connector);
      stop();
      await everythingArrives(connector, subscriber);
      expect(connector.outbox.ledger().dropped).toEqual({});
    });
  });

  it(
    'does not block the connector while it leaves a new connection unanswered',
    { tags: 'long' },
    async () => {
      await withLab({}, async (lab) => {
        const subscriber = await lab.subscribe();
        lab.proxy.stall();
        const connector = await lab.start();
        connector.send('alarm', 0, { detected: true });
        await eventually('the attempt is given up', () => connector.uplink.status().attempts > 1);
        lab.proxy.cut();
        await everythingArrives(connector, subscriber);
        expect(connector.uplink.online).toBe(true);
      });
    },
  );
});
