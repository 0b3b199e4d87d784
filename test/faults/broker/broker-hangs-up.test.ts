/** Brokers that close the connection instead of refusing a message, and links that break and look the same. */
import { Aedes } from 'aedes';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Connector } from '../../support/kit/connector.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { kitAt } from '../../support/brokers/kit-scene.ts';
import type { Script } from '../../support/brokers/scripted-broker.ts';
import { connected, withLab } from '../support/lab.ts';
import { texts } from '../../../src/kit/outbox/texts.ts';

/** In a batch, what is forbidden on its own topic would get through. */
const singly = { batch_rows: 1 } as const;

/** Hangs up on messages that `forbids` finds, without a word. */
function hangingUp(forbids: (topic: string, payload: string) => boolean): Script {
  return {
    onPublish: ({ topic, payload, packet_id }, peer) => {
      if (forbids(topic, payload)) peer.hangUp();
      else peer.puback(packet_id);
    },
  };
}

async function expectToKeepForbiddenKind(kit: Connector, lines: readonly string[]): Promise<void> {
  for (let n = 0; n < 20; n++) {
    kit.send('alarm', n, { n });
    kit.send('feed', n, { n });
  }
  await eventually('the kind is named', () => kit.outbox.dispatch.refusedKinds().length > 0);
  expect(kit.outbox.dispatch.refusedKinds()).toMatchObject([{ kind: 'event' }]);
  await eventually('the others are delivered', () => kit.outbox.ledger().delivered >= 20);
  expect(kit.outbox.ledger()).toMatchObject({ delivered: 20, buffered: 20, quarantined: 0, dropped: {} });
  expect(lines.filter((line) => line.startsWith(texts.kind_refused))).toHaveLength(1);
}

describe('a broker that hangs up', () => {
  it.each(['auto', '3.1.1'] as const)(
    'on one kind of topic does not stop the others, and the kind is kept and named, with protocol: %s',
    async (protocol) => {
      const script = hangingUp((topic) => topic.includes('/event/'));
      const { kit, lines } = await kitAt(script, { ...singly, protocol });
      await expectToKeepForbiddenKind(kit, lines);
    },
  );

  it('on one message has only that message put into the quarantine', async () => {
    const script = hangingUp((_, payload) => payload.includes('poison'));
    const { kit, lines } = await kitAt(script, singly);
    kit.send('alarm', 0, { poison: true });
    let n = 0;
    const traffic = setInterval(() => kit.send('alarm', n, { n: (n += 1) }), 200);
    await eventually('it is in the quarantine', () => kit.outbox.ledger().quarantined === 1);
    clearInterval(traffic);
    await eventually('the others are delivered', () => kit.outbox.ledger().buffered === 0);
    expect(kit.outbox.ledger()).toMatchObject({ delivered: n, quarantined: 1, dropped: {} });
    expect(lines.join()).toMatch(/quarantined .*the broker ended the connection when this was sent/);
  });

  it('as aedes does on a topic that it does not authorise, is served with the others', async () => {
    const aedes = await Aedes.createBroker();
    aedes.authorizePublish = (_client, { topic }, done) =>
      done(topic.includes('/event/') ? new Error('forbidden') : null);
    const server = createServer(aedes.handle);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const { kit, lines } = await kitAt({}, { ...singly, url: `mqtt://127.0.0.1:${port}` });
      await expectToKeepForbiddenKind(kit, lines);
      await kit.stop();
    } finally {
      aedes.close();
      server.close();
    }
  });
});

describe.skipIf(peerMissing('mosquitto'))(
  'a link that breaks eight times while a message is in flight',
  () => {
    it('puts nothing into the quarantine, and everything arrives when it holds', async () => {
      await withLab({}, async (lab) => {
        const subscriber = await lab.subscribe();
        const connector = await lab.start();
        for (let n = 0; n < 5; n++) connector.send('task', n, { n });
        for (let n = 0; n < 8; n++) {
          await connected(connector);
          await eventually('it is sent', () => connector.uplink.status().in_flight > 0, 5_000).catch(
            () => undefined,
          );
          lab.proxy.cut();
          await eventually('it is gone', () => !connector.uplink.online);
          expect(connector.outbox.ledger().quarantined).toBe(0);
        }
        await eventually('all are delivered', () => connector.outbox.ledger().delivered === 5);
        expect((await subscriber.until(({ unique }) => unique === 5)).unique).toBe(5);
        expect(connector.outbox.ledger().quarantined).toBe(0);
      });
    }, 120_000);
  },
);
