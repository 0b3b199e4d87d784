/** Access rules that forbid one topic: a mistake of the cloud's operator, which may be corrected years later or in a minute. */
import { describe, expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { eventually } from '../../support/eventually.ts';
import { test_drones, test_kit } from '../../support/gps.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, triedAgain, withLab } from '../support/lab.ts';
import { texts } from '../../../src/kit/outbox/texts.ts';

const rules = (...writable: readonly string[]): string =>
  ['topic read #', ...writable.map((topic) => `topic write k1/${test_kit}/up/${topic}`), ''].join('\n');
const without_events = rules('state', 'feed/#', 'batch');
const all = 'topic readwrite #\n';
const [forbidden, permitted] = test_drones;

describe.skipIf(peerMissing('mosquitto'))('a topic that the kit may not write to', () => {
  it('keeps its messages, is reported, and does not block other topics', async () => {
    await withLab({ acl: without_events }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      for (let n = 0; n < 10; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      const { dispatch } = connector.outbox;
      await eventually('it is known', () => dispatch.refusedKinds().length > 0);
      expect(dispatch.refusedKinds()).toMatchObject([{ kind: 'event', code: 0x87 }]);
      expect((await subscriber.until(({ unique }) => unique === 5)).unique).toBe(5);
      await eventually('the feeds are delivered', () => connector.outbox.ledger().delivered === 5);
      expect(connector.outbox.ledger()).toMatchObject({ buffered: 5, quarantined: 0, dropped: {} });
    });
  });

  it(
    'is used again without a restart once the rules are corrected, with one log line for the episode',
    { tags: 'long' },
    async () => {
      await withLab({ acl: without_events }, async (lab) => {
        const subscriber = await lab.subscribe();
        const connector = await lab.start();
        await connected(connector);
        for (let n = 0; n < 6; n++) connector.send('alarm', n, { n });
        await eventually('it is known', () => connector.outbox.dispatch.refusedKinds().length > 0);
        await triedAgain(lab, 1);
        await lab.broker.setAcl(all);
        await eventually('they are delivered', () => connector.outbox.ledger().delivered === 6);
        expect((await subscriber.until(({ unique }) => unique === 6)).unique).toBe(6);
        const over = texts.kind_accepted;
        await eventually('it is over', () => lab.lines.includes(over));
        expect(lab.lines.filter((sentence) => sentence.startsWith('broker refused'))).toHaveLength(1);
        expect(connector.outbox.dispatch.refusedKinds()).toEqual([]);
      });
    },
  );

  it('costs nothing of a backlog while everything is forbidden for some seconds', async () => {
    await withLab({ acl: rules('state') }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      for (let n = 0; n < 4_000; n++) connector.send(n % 4 ? 'feed' : 'alarm', n, { n });
      await connector.outbox.flush();
      await connected(connector);
      await triedAgain(lab, 3);
      expect(connector.outbox.ledger()).toMatchObject({ buffered: 4_000, quarantined: 0, dropped: {} });
      await lab.broker.setAcl(all);
      await eventually('all is delivered', () => connector.outbox.ledger().delivered === 4_000);
      expect((await subscriber.until(({ unique }) => unique === 4_000)).unique).toBe(4_000);
    });
  });

  it('sends a message to the quarantine only when others of its kind are taken, and retry delivers it', async () => {
    const acl = rules('state', 'batch', channels.event(permitted, 'gps'));
    await withLab({ acl }, async (lab) => {
      const subscriber = await lab.subscribe();
      const connector = await lab.start();
      await connected(connector);
      const { outbox } = connector;
      outbox.append({ lane: 'alarm', channel: channels.event(forbidden, 'gps'), data: { n: -1 } });
      let sent = 0;
      await eventually('it is in the quarantine', () => {
        if (outbox.ledger().delivered >= sent) {
          outbox.append({ lane: 'alarm', channel: channels.event(permitted, 'gps'), data: { n: sent } });
          sent += 1;
        }
        return outbox.ledger().quarantined === 1;
      });
      const quarantined = await outbox.quarantine.list();
      expect(quarantined.map(({ code, lane }) => `${lane} ${code}`)).toEqual(['alarm 135']);
      await eventually('the others are delivered', () => outbox.ledger().delivered === sent);
      await lab.broker.setAcl(all);
      await eventually('the rules are in force', () => lab.broker.log().includes('Reloading config'));
      await outbox.quarantine.retry(undefined);
      await eventually('it is delivered', () => outbox.ledger().delivered === sent + 1);
      expect((await subscriber.until(({ unique }) => unique === sent + 1)).unique).toBe(sent + 1);
    });
  });
});
