/** One session against a broker that does what the test tells it to. */
import { describe, expect, it } from 'vitest';
import { codeInWords } from '../../../src/mqtt/codes.ts';
import { sleep } from '../../../src/platform/time.ts';
import { ConnectFailed } from '../../../src/mqtt/connect-failed.ts';
import type { Puback } from '../../../src/mqtt/session.ts';
import { texts } from '../../../src/mqtt/texts.ts';
import { eventually } from '../../support/eventually.ts';
import { property, type Script, suback, uint16 } from '../../support/brokers/scripted-broker.ts';
import { withBroker } from '../../support/brokers/session-scene.ts';

const not_authorized = 0x87;
/** Twenty PINGRESP, and the PUBREL of a message with QoS 2 that never came. */
const behind = [...Array.from({ length: 20 }, () => [0xd0, 0]), [0x62, 2, 0, 7]];
const message = { topic: 'k1/a', payload: 'x', retain: false } as const;

describe('Session', () => {
  it.each([
    ['follow a DISCONNECT', [[0xe0, 2, 0, 0], ...behind]],
    ['follow a second CONNACK', [[0x20, 3, 0, 0, 0], ...behind]],
    ['come before a packet that cannot be read', [...behind, [0x40, 5, 0, 1, 0, 1, 0xff]]],
  ] as const)(
    'ends without its process when packets %s, in one piece with the CONNACK',
    async (_what, packets) => {
      const faults: Error[] = [];
      const note = (error: Error): void => void faults.push(error);
      process.prependListener('uncaughtException', note);
      try {
        const bytes = Buffer.from([[0x20, 3, 0, 0, 0], ...packets].flat());
        await withBroker({ onConnect: (peer) => peer.write(bytes) }, async ({ broker, open }) => {
          await open().then(
            async ({ closed }) => closed,
            (error: unknown) => expect(error).toBeInstanceOf(ConnectFailed),
          );
          broker.follow({});
          expect((await (await open()).publishAndWait(message)).code).toBe(0);
        });
      } finally {
        process.off('uncaughtException', note);
      }
      expect(faults).toEqual([]);
    },
  );

  describe('when it connects', () => {
    it('announces the expiry of its session, its Receive Maximum and the delay of its will', async () => {
      await withBroker({}, async ({ broker, open }) => {
        await open({ will: { topic: 'k1/state', payload: 'gone', retain: true, delay_s: 20 } });
        const sent = broker.peers[0]?.connect.toString('latin1');
        expect(sent).toContain(property(0x11, Buffer.from([0, 0, 2, 88])).toString('latin1'));
        expect(sent).toContain(property(0x21, uint16(16)).toString('latin1'));
        expect(sent).toContain(property(0x18, Buffer.from([0, 0, 0, 20])).toString('latin1'));
        expect(sent).toContain('k1/state');
      });
    });

    it('reads what the broker offers from its CONNACK', async () => {
      const offer = Buffer.concat([
        property(0x21, uint16(7)),
        property(0x27, Buffer.from([0, 0, 4, 0])),
        property(0x25, Buffer.from([0])),
        property(0x24, Buffer.from([1])),
      ]);
      await withBroker({ onConnect: (peer) => peer.connack(0, offer) }, async ({ open }) => {
        const { receive_maximum, packet_bytes_max, retains, qos_max } = await open();
        expect({ receive_maximum, packet_bytes_max, retains, qos_max }).toEqual({
          receive_maximum: 7,
          packet_bytes_max: 1_024,
          retains: false,
          qos_max: 1,
        });
      });
    });

    it('takes the limits of MQTT 5 where the broker announces none', async () => {
      await withBroker({}, async ({ open }) => {
        const { receive_maximum, packet_bytes_max, retains, announces_no_room } = await open();
        expect({ receive_maximum, packet_bytes_max, retains, announces_no_room }).toEqual({
          receive_maximum: 65_535,
          packet_bytes_max: 268_435_455,
          retains: true,
          announces_no_room: false,
        });
      });
    });
  });

  describe('when it subscribes', () => {
    it.each(['5', '3.1.1'] as const)(
      'returns the filters that the broker refused, with MQTT %s',
      async (protocol) => {
        const code = protocol === '5' ? not_authorized : 0x80;
        const script: Script = {
          onSubscribe: (packet_id, _, peer) => peer.write(suback(packet_id, [1, code], peer.version)),
        };
        await withBroker(script, async ({ open }) => {
          const session = await open({ protocol });
          expect([...(await session.subscribe(['a', 'b'], { rap: true }))]).toEqual([['b', code]]);
        });
      },
    );

    it.each([
      ['5', true, 0x09],
      ['5', false, 0x01],
      ['3.1.1', true, 0x01],
    ] as const)(
      'with MQTT %s and retain as published %s sends the options %i',
      async (protocol, rap, byte) => {
        const sent: number[] = [];
        const script: Script = {
          onSubscribe: (packet_id, _, peer, options) => {
            sent.push(...options);
            peer.write(suback(packet_id, [1], peer.version));
          },
        };
        await withBroker(script, async ({ open }) => {
          await (await open({ protocol })).subscribe(['a'], { rap });
          expect(sent).toEqual([byte]);
        });
      },
    );

    it('rejects when the broker does not answer within the time for a connection', async () => {
      await withBroker({ onSubscribe: () => undefined }, async ({ open }) => {
        const session = await open({ answer_ms: 500 });
        await expect(session.subscribe(['a'], { rap: false })).rejects.toThrow(/did not answer/u);
      });
    });

    it('waits for an answer behind queued messages that are handled slowly', async () => {
      const handled: string[] = [];
      const script: Script = {
        onSubscribe: (packet_id, _, peer) => {
          // More than the buffers of both ends hold, so that the answer cannot be read before the messages are handled.
          for (let n = 1; n <= 8; n += 1) peer.publish('a', Buffer.alloc(60_000), n);
          peer.write(suback(packet_id, [1], peer.version));
        },
      };
      await withBroker(script, async ({ open }) => {
        const session = await open({
          answer_ms: 500,
          packet_bytes_max: 100_000,
          unhandled_max: 1,
          onMessage: async ({ topic }) => {
            await sleep(120, new AbortController().signal);
            handled.push(topic);
            return true;
          },
        });
        await expect(session.subscribe(['a'], { rap: false })).resolves.toEqual(new Map());
        expect(handled).toHaveLength(8);
      });
    });

    it('rejects at once when the connection ends', async () => {
      await withBroker({ onSubscribe: (_, __, peer) => peer.hangUp() }, async ({ open }) => {
        const session = await open();
        await expect(session.subscribe(['a'], { rap: false })).rejects.toThrow(/closed the connection/u);
      });
    });
  });

  describe('when it ends', () => {
    it('reports the code and the reason of the broker', async () => {
      await withBroker({}, async ({ broker, open }) => {
        const session = await open();
        broker.peers[0]?.disconnect(0x98, 'maintenance');
        expect(await session.closed).toBe(
          'the broker ended the connection: administrative action (0x98): "maintenance"',
        );
        expect(session.disconnect_code).toBe(0x98);
        expect(session.ended_by_us).toBe(false);
      });
    });

    it('reports a broker that closes the connection without a DISCONNECT', async () => {
      await withBroker({}, async ({ broker, open }) => {
        const session = await open();
        broker.peers[0]?.hangUp();
        expect(await session.closed).toBe(texts.closed_by_broker);
        expect(session.disconnect_code).toBeUndefined();
      });
    });

    it.each([
      ['with properties', Buffer.from([0xe0, 2, 0x8e, 0])],
      ['without properties', Buffer.from([0xe0, 1, 0x8e])],
    ])(
      'knows the reason of a DISCONNECT %s that comes in one segment with the CONNACK',
      async (_name, next) => {
        const together = Buffer.concat([Buffer.from([0x20, 3, 0, 0, 0]), next]);
        await withBroker({ onConnect: (peer) => peer.write(together) }, async ({ open }) => {
          const session = await open();
          expect(await session.closed).toBe(texts.ended_by_broker(codeInWords(0x8e)));
          expect(session.disconnect_code).toBe(0x8e);
        });
      },
    );

    it('by its own will resolves with that reason', async () => {
      await withBroker({}, async ({ open }) => {
        const session = await open();
        await session.end('renewing presence');
        expect(await session.closed).toBe('renewing presence');
        expect(session.ended_by_us).toBe(true);
      });
    });

    it('by its own will waits for the PUBACKs under way, and sends nothing more', async () => {
      await withBroker({ onPublish: () => undefined }, async ({ broker, open }) => {
        const session = await open();
        const answers: Puback[] = [];
        session.publish(message, (puback) => answers.push(puback));
        await eventually('it is in flight', () => broker.published.length === 1);
        const ended = session.end();
        session.publish({ ...message, topic: 'late' }, (puback) => answers.push(puback));
        broker.peers[0]?.puback(1);
        await ended;
        expect(await session.closed).toBe('stopped');
        expect(answers).toEqual([{ code: 0, reason: '' }]);
        expect(broker.published).toMatchObject([{ topic: message.topic }]);
      });
    });

    it('closes the connection to a broker that stops reading', async () => {
      await withBroker({ onPublish: () => undefined }, async ({ broker, open }) => {
        const session = await open();
        session.publish(message, () => undefined);
        await eventually('it is in flight', () => broker.published.length === 1);
        broker.silence();
        await session.end();
        expect(await session.closed).toBe('stopped');
      });
    });
  });
});
