/** The cloud's consumer is away: the broker takes the messages, says that nobody listens (PUBACK 0x10), and drops them. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, everythingArrives, triedAgain, withLab } from '../support/lab.ts';

describe.skipIf(peerMissing('mosquitto'))('a topic without a subscriber', () => {
  it(
    'keeps its messages until there are subscribers, without publishing them in a loop meanwhile',
    { tags: 'long' },
    async () => {
      await withLab({}, async (lab) => {
        const connector = await lab.start();
        await connected(connector);
        for (let n = 0; n < 200; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
        await eventually('it is known', () => connector.outbox.dispatch.withoutSubscribers().length > 0);
        await connector.outbox.flush();
        const again_bytes = await triedAgain(lab, 2);
        expect(connector.outbox.ledger()).toMatchObject({ accepted: 200, delivered: 0, buffered: 200 });
        // One message tries now and then; all 200 once more would be 40 kB.
        expect(again_bytes).toBeLessThan(20_000);
        const subscriber = await lab.subscribe();
        await everythingArrives(connector, subscriber);
        // They left in batches, so that no message of their own kinds has met the subscriber.
        await eventually('none is named', () => connector.outbox.dispatch.withoutSubscribers().length === 0);
      });
    },
  );
});
