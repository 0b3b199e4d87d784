/** Two gateways with one kit id: a cloned card. The broker throws out the one when the other connects (MQTT 5 section 3.1.4). */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { withLab } from '../support/lab.ts';

const war_ms = 4_000;
const per_second = 100;
/** Each of the two makes the attempts that its growing pauses allow: 10 to 17 were seen. Without pauses it would be hundreds. */
const connections_max = 24;

describe.skipIf(peerMissing('mosquitto'))('two connectors with one kit id', () => {
  it('do not wage war, lose nothing, and when one goes the other is well', { tags: 'long' }, async () => {
    await withLab({}, async (lab) => {
      const subscriber = await lab.subscribe();
      // The second one's epoch is 2, so that the witness can tell their numbers apart.
      const file = `${lab.dir}/second.db`;
      await (await lab.start({ file })).stop();
      const before = lab.proxy.counters.accepted;
      const first = await lab.start();
      const second = await lab.start({ file });
      const stop_first = lab.produce(first, ['alarm', 'feed'], per_second);
      const stop_second = lab.produce(second, ['alarm', 'feed'], per_second);
      const began_ms = performance.now();
      await eventually('both have worked for a while', () =>
        [first, second].every(({ outbox }) => outbox.ledger().accepted >= (per_second * war_ms) / 1_000),
      );
      // On a busy machine it lasts longer.
      const wars = Math.max(1, (performance.now() - began_ms) / war_ms);
      expect(lab.proxy.counters.accepted - before).toBeLessThanOrEqual(connections_max * wars);
      stop_first();
      stop_second();
      await first.outbox.flush();
      const of_first = first.outbox.ledger();
      await first.stop();
      const { accepted } = second.outbox.ledger();
      const everything = ({
        epochs,
      }: {
        readonly epochs: Record<number, { readonly unique: number }>;
      }): boolean => epochs[second.outbox.epoch]?.unique === accepted;
      expect(everything(await subscriber.until(everything))).toBe(true);
      // What the first could not deliver is still in its file for its next start.
      const again = await lab.start({ file: `${lab.dir}/buffer-1.db` });
      const total = of_first.accepted + accepted;
      await second.stop();
      await eventually('its file is empty', () => again.outbox.ledger().buffered === 0);
      expect((await subscriber.until(({ unique }) => unique === total)).unique).toBe(total);
    });
  });
});
