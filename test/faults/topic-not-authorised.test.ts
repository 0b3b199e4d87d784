/** Access rules that forbid one topic: a mistake of the cloud's operator, which may be corrected years later or in a minute. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { test_kit } from '../support/gps.ts';
import { peerMissing } from '../support/peers.ts';
import { connected, withLab } from './support/lab.ts';

const acl = [
  'topic read #',
  `topic write k1/${test_kit}/up/state`,
  `topic write k1/${test_kit}/up/feed/#`,
  `topic write k1/${test_kit}/up/batch`,
].join('\n');

describe.skipIf(peerMissing('mosquitto'))('a topic that the kit may not write to', () => {
  it('sends its messages to the quarantine with the reason, and the other topics go on', async () => {
    await withLab({ acl: `${acl}\n` }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      for (let n = 0; n < 10; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      await eventually('five are in the quarantine', () => connector.outbox.ledger().quarantined === 5);
      expect((await subscriber.until(({ unique }) => unique === 5, 5_000)).unique).toBe(5);
      const { quarantine } = await connector.outbox.inspect();
      expect(new Set(quarantine.map(({ code, lane }) => `${lane} ${code}`))).toEqual(new Set(['alarm 135']));
    });
  });

  it('delivers them after all when the rules are corrected and the technician says retry', async () => {
    await withLab({ acl: `${acl}\n` }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      for (let n = 0; n < 5; n++) connector.send('alarm', n, { n });
      await eventually('five are in the quarantine', () => connector.outbox.ledger().quarantined === 5);
      await lab.broker.setAcl('topic readwrite #\n');
      await eventually('the rules are in force', () => lab.broker.log().includes('Reloading config'));
      await connector.outbox.retryQuarantined(undefined);
      await eventually('they are delivered', () => connector.outbox.ledger().delivered === 5);
      expect((await subscriber.until(({ unique }) => unique === 5, 5_000)).unique).toBe(5);
    });
  });
});
