/** The broker is gone, the kit goes on working, and the broker comes back. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, everythingArrives, withLab } from '../support/lab.ts';

describe.skipIf(peerMissing('mosquitto'))('a broker that is away for long', () => {
  it(
    'gets everything that was accepted meanwhile, each number once, most of it in batches',
    { tags: 'long' },
    async () => {
      await withLab({}, async (lab) => {
        const connector = await lab.start();
        await connected(connector);
        await lab.broker.kill();
        await eventually('it is noticed', () => !connector.uplink.online);
        for (let n = 0; n < 20_000; n++)
          connector.send(n % 10 ? 'feed' : 'alarm', n, { n, lat: 47 + n / 1e5 });
        await connector.outbox.flush();
        expect(connector.outbox.ledger()).toMatchObject({ accepted: 20_000, buffered: 20_000, delivered: 0 });
        // The subscriber is there before the kit: what is published without one would come again much later.
        lab.proxy.setAdmission('refuse');
        await lab.broker.start();
        const subscriber = await lab.subscribe();
        lab.proxy.setAdmission('pass');
        await everythingArrives(connector, subscriber);
        const seen = await subscriber.report();
        expect(seen.duplicates).toBe(0);
        // Telemetry comes in batches; alarms may come singly.
        expect(seen.packets).toBeLessThan(4_000);
      });
    },
  );

  it('and a connector that is restarted meanwhile keeps what the one before had accepted', async () => {
    await withLab({}, async (lab) => {
      lab.proxy.setAdmission('refuse');
      const file = `${lab.dir}/one.db`;
      const first = await lab.start({ file });
      const [of_first] = Array.from({ length: 1_000 }, (_, n) => first.send('feed', n, { n }).seq);
      await first.stop();
      const second = await lab.start({ file });
      const [of_second] = Array.from({ length: 1_000 }, (_, n) => second.send('feed', n, { n }).seq);
      const subscriber = await lab.subscribe();
      lab.proxy.setAdmission('pass');
      await everythingArrives(second, subscriber);
      const thousandFrom = (seq = 0) => [[seq, seq + 999]];
      expect(await subscriber.ranges()).toEqual({
        [first.outbox.epoch]: thousandFrom(of_first),
        [second.outbox.epoch]: thousandFrom(of_second),
      });
    });
  });
});
