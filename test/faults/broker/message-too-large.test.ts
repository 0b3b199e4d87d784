/** A message that the broker will never take must not stand in the way of those that it takes. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, withLab } from '../support/lab.ts';

const limit_bytes = 4_000;
const small = { lat: 47.1, lon: 8.5 };
/** Nothing that a batch could make smaller. */
const large = { picture: randomBytes(limit_bytes).toString('base64') };

describe.skipIf(peerMissing('mosquitto'))('a message larger than the broker takes', () => {
  it.each([
    ['announces as its packet limit', [`max_packet_size ${limit_bytes}`], 0x95],
    // MQTT 5 does not list mosquitto's answer among those of a PUBACK.
    ['only shows when it comes', [`message_size_limit ${limit_bytes}`], 0x95],
  ])('goes to the quarantine and the rest continues, when the broker %s', async (_, conf, reason) => {
    await withLab({ conf }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      for (const lane of ['feed', 'alarm'] as const) {
        connector.send(lane, 0, small);
        connector.send(lane, 0, large);
        connector.send(lane, 0, small);
      }
      await eventually('two are in the quarantine', () => connector.outbox.ledger().quarantined === 2);
      const seen = await subscriber.until(({ unique }) => unique === 4);
      expect(seen.unique).toBe(4);
      const quarantine = await connector.outbox.quarantine.list();
      expect(quarantine.map(({ code }) => code)).toEqual([reason, reason]);
      await eventually('it is online', () => connector.uplink.online);
    });
  });

  it('in a backlog too: batches are made smaller until they fit', { tags: 'long' }, async () => {
    await withLab({ conf: [`max_packet_size ${limit_bytes}`] }, async (lab) => {
      const subscriber = await lab.subscribe();
      lab.proxy.setAdmission('refuse');
      const connector = await lab.start();
      for (let n = 0; n < 2_000; n++)
        connector.send('feed', n, { n, noise: Math.random(), more: Math.random() });
      await connector.outbox.flush();
      lab.proxy.setAdmission('pass');
      await eventually('the backlog is gone', () => connector.outbox.ledger().buffered === 0);
      const seen = await subscriber.until(({ unique }) => unique === 2_000);
      expect(seen.unique).toBe(2_000);
      expect(connector.outbox.ledger().quarantined).toBe(0);
    });
  });
});
