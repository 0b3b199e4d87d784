/** What a session publishes, and the answers to it, with a broker that does what the test tells it to. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OutcomeUnknown, type Puback } from '../../../src/mqtt/session.ts';
import { waiting_max } from '../../../src/mqtt/publisher.ts';
import { texts } from '../../../src/mqtt/texts.ts';
import { eventually } from '../../support/eventually.ts';
import { framed, property, type Script, uint16 } from '../../support/brokers/scripted-broker.ts';
import { withBroker } from '../../support/brokers/session-scene.ts';

const not_authorized = 0x87;
const packet_ids = 65_535;
const message = { topic: 'k1/a', payload: 'x', retain: false } as const;

describe('Session, when it publishes', () => {
  it('returns each message its own PUBACK, in whatever order they come', async () => {
    const ids: number[] = [];
    const script: Script = {
      onPublish: ({ packet_id }, peer) => {
        ids.push(packet_id);
        if (ids.length < 3) return;
        peer.puback(ids[2] ?? 0, 0x10);
        peer.puback(ids[0] ?? 0);
        peer.puback(ids[1] ?? 0, not_authorized);
      },
    };
    await withBroker(script, async ({ open }) => {
      const session = await open();
      const all = ['a', 'b', 'c'].map(async (topic) => session.publishAndWait({ ...message, topic }));
      expect(await Promise.all(all)).toEqual([
        { code: 0, reason: '' },
        { code: not_authorized, reason: 'not authorized (0x87)' },
        { code: 0x10, reason: '' },
      ]);
    });
  });

  it.each([
    ['PUBREC', [0x50], []],
    ['PUBCOMP', [0x70], []],
    ['SUBACK', [0x90], [0, 1]],
    ['UNSUBACK', [0xb0], [0, 0]],
  ])('ends the connection to a broker that answers with %s', async (name, [first = 0], rest) => {
    const script: Script = {
      onPublish: ({ packet_id }, peer) => peer.write(framed(first, uint16(packet_id), Buffer.from(rest))),
    };
    await withBroker(script, async ({ open }) => {
      const session = await open();
      await expect(session.publishAndWait(message)).rejects.toBeInstanceOf(OutcomeUnknown);
      expect(await session.closed).toBe(texts.wrong_answer(name));
    });
  });

  it('takes a PUBREL of the same number for one of a message of the broker', async () => {
    const script: Script = {
      onPublish: ({ packet_id }, peer) => {
        peer.write(framed(0x62, uint16(packet_id)));
        peer.puback(packet_id);
      },
    };
    await withBroker(script, async ({ open }) => {
      expect(await (await open()).publishAndWait(message)).toEqual({ code: 0, reason: '' });
    });
  });

  it('sends a message once a packet identifier is free', async () => {
    await withBroker({ onPublish: () => undefined }, async ({ broker, open }) => {
      const session = await open();
      const answered: number[] = [];
      for (let n = 0; n <= packet_ids; n += 1) session.publish(message, () => answered.push(n));
      await eventually('as many are in flight as can be', () => broker.published.length === packet_ids);
      broker.peers[0]?.puback(17);
      await eventually('the last one is sent', () => broker.published.length > packet_ids);
      expect(broker.published.at(-1)?.packet_id).toBe(17);
      broker.peers[0]?.puback(17);
      await eventually('it is answered', () => answered.length === 2);
      expect(answered).toEqual([16, packet_ids]);
    });
  });

  it('never has more in flight than the Receive Maximum of the broker, and keeps the order', async () => {
    const offer = property(0x21, uint16(2));
    const script: Script = {
      onConnect: (peer) => peer.connack(0, offer),
      onPublish: () => undefined,
    };
    await withBroker(script, async ({ broker, open }) => {
      const session = await open();
      const answered: string[] = [];
      const topicsSent = () => broker.published.map(({ topic }) => topic);
      const publish = (topic: string): void =>
        session.publish({ ...message, topic }, () => {
          answered.push(topic);
          // Behind all that waits.
          if (topic === 'b') publish('e');
        });
      for (const topic of ['a', 'b', 'c', 'd']) publish(topic);
      await eventually('two are sent', () => broker.published.length === 2);
      await new Promise<void>((resolve) => session.ping(resolve));
      expect(topicsSent()).toEqual(['a', 'b']);
      // The later one first: each PUBACK makes room for one.
      for (const at of [1, 0, 2, 3, 4]) {
        await eventually('it is sent', () => broker.published.length > at);
        expect(broker.published.length - answered.length).toBeLessThanOrEqual(2);
        broker.peers[0]?.puback(broker.published[at]?.packet_id ?? 0);
        await eventually('it is answered', () => answered.includes(broker.published[at]?.topic ?? ''));
      }
      expect(topicsSent()).toEqual(['a', 'b', 'c', 'd', 'e']);
    });
  });

  it('ends the connection when too many messages wait above the Receive Maximum', async () => {
    const script: Script = {
      onConnect: (peer) => peer.connack(0, property(0x21, uint16(1))),
      onPublish: () => undefined,
    };
    await withBroker(script, async ({ broker, open }) => {
      const session = await open();
      const answered: Puback[] = [];
      for (let n = 0; n <= waiting_max; n += 1) session.publish(message, (puback) => answered.push(puback));
      await eventually('one is sent', () => broker.published.length === 1);
      // It is open: its answer to a ping comes.
      await new Promise<void>((resolve) => session.ping(resolve));
      session.publish(message, (puback) => answered.push(puback));
      expect(await session.closed).toBe(texts.acknowledges_too_few);
      expect(answered).toEqual([]);
      expect(broker.published.length).toBe(1);
    });
  });

  it('refuses what is larger than the broker accepts without sending it', async () => {
    const offer = property(0x27, Buffer.from([0, 0, 0, 100]));
    await withBroker({ onConnect: (peer) => peer.connack(0, offer) }, async ({ broker, open }) => {
      const session = await open();
      const { code } = await session.publishAndWait({ ...message, payload: 'x'.repeat(100) });
      expect(code).toBe(0x95);
      expect(broker.published).toEqual([]);
    });
  });

  it('leaves the retain flag out where the broker keeps nothing', async () => {
    const offer = property(0x25, Buffer.from([0]));
    await withBroker({ onConnect: (peer) => peer.connack(0, offer) }, async ({ broker, open }) => {
      await (await open()).publishAndWait({ ...message, retain: true });
      expect(broker.published).toMatchObject([{ retain: false }]);
    });
  });

  it('rejects with another error when the connection had ended before', async () => {
    await withBroker({}, async ({ broker, open }) => {
      const session = await open();
      session.destroy('enough');
      await session.closed;
      const failed = session.publishAndWait(message);
      await expect(failed).rejects.toThrow(texts.session_ended);
      await expect(failed).rejects.not.toBeInstanceOf(OutcomeUnknown);
      expect(broker.published).toEqual([]);
    });
  });

  it('never calls back for a message whose connection ended first', async () => {
    await withBroker({ onPublish: (_, peer) => peer.hangUp() }, async ({ open }) => {
      const session = await open();
      const answers: Puback[] = [];
      session.publish(message, (puback) => answers.push(puback));
      await session.closed;
      await nextTurn();
      expect(answers).toEqual([]);
    });
  });
});
