/** Every code that a broker may send (MQTT 5 section 2.4, MQTT 3.1.1 sections 3.2.2.3 and 3.9.3) reaches people in words. */
import { describe, expect, it } from 'vitest';
import { codeInWords, reasonOf } from '../../../src/mqtt/codes.ts';
import { ConnectFailed } from '../../../src/mqtt/connect-failed.ts';
import { openSession, type Session } from '../../../src/mqtt/session.ts';
import {
  framed,
  type Peer,
  property,
  type ScriptedBroker,
  startScriptedBroker,
  string,
  suback,
  uint16,
} from '../../support/brokers/scripted-broker.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';
import { corpus, isDeceptive } from '../../support/foreign-text.ts';

const codes_of = {
  connack: [
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a,
    0x9b, 0x9c, 0x9d, 0x9f,
  ],
  connack_311: [1, 2, 3, 4, 5],
  puback: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  suback: [0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2],
  disconnect: [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97,
    0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
  ],
} as const;
const unlisted = 0x7e;
const detail = 'no such tenant';
const detail_property = property(0x1f, string(detail));
const other_broker = property(0x1c, string('mqtt2.example.com'));

type Protocol = '5' | '3.1.1';

async function withBroker(
  play: (broker: ScriptedBroker, open: (protocol?: Protocol) => Promise<Session>) => Promise<void>,
): Promise<void> {
  const broker = await startScriptedBroker();
  const end = new AbortController();
  const open = async (protocol: Protocol = '5'): Promise<Session> =>
    openSession(
      {
        broker: brokerOptions(broker.url, { protocol }),
        client_id: 'kit',
        protocol,
        session_expiry_s: 0,
        receive_maximum: 16,
        packet_bytes_max: 10_000,
        onMessage: async () => true,
        onOversize: () => undefined,
      },
      end.signal,
    );
  try {
    await play(broker, open);
  } finally {
    end.abort();
    await broker.close();
  }
}

async function refusalOf(attempt: Promise<Session>): Promise<ConnectFailed> {
  const error: unknown = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectFailed)) throw new Error(`not refused: ${String(error)}`);
  return error;
}

function disconnectPacket(code: number, ...properties: readonly Buffer[]): Buffer {
  const all = Buffer.concat(properties);
  return framed(0xe0, Buffer.from([code, all.length]), all);
}

function hangUpWith(peer: Peer | undefined, packet: Buffer): void {
  peer?.write(packet);
  peer?.hangUp();
}

describe('the codes of a broker', () => {
  const all = [...new Set(Object.values(codes_of).flat())].filter((code) => code >= 0x80 || code < 6);

  it.each(all)('%d has words and a remedy', (code) => {
    const unknown = reasonOf(unlisted);
    const { words, remedy } = reasonOf(code);
    expect(words).not.toBe(unknown.words);
    expect(remedy).not.toBe('');
  });

  it('differ in their words', () => {
    const codes = all.filter((code) => code >= 0x80);
    expect(new Set(codes.map((code) => reasonOf(code).words)).size).toBe(codes.length);
  });

  it.each(['5', '3.1.1'] as const)('refuse a connection of %s with their words', async (protocol) => {
    await withBroker(async (broker, open) => {
      for (const code of protocol === '5' ? codes_of.connack : codes_of.connack_311) {
        broker.follow({
          onConnect: (peer) => {
            peer.connack(code, Buffer.concat([detail_property, other_broker]));
            peer.hangUp();
          },
        });
        const { stage, code: seen, message } = await refusalOf(open(protocol));
        expect({ stage, seen }).toEqual({ stage: 'refused', seen: code });
        const details = { reasonString: detail, serverReference: 'mqtt2.example.com' };
        expect(message).toBe(codeInWords(code, protocol === '5' ? details : undefined));
      }
    });
  });

  it.each(Object.values(corpus))('quote nothing deceptive of the broker: %j', (text) => {
    const details = { reasonString: text, serverReference: text };
    expect(isDeceptive(codeInWords(0x9d, details))).toBe(false);
  });

  it('end a connection with their words', async () => {
    await withBroker(async (broker, open) => {
      for (const code of codes_of.disconnect) {
        const session = await open();
        hangUpWith(broker.peers.at(-1), disconnectPacket(code, detail_property, other_broker));
        const reason = await session.closed;
        expect(session.disconnect_code).toBe(code);
        const details = { reasonString: detail, serverReference: 'mqtt2.example.com' };
        expect(reason).toContain(codeInWords(code, details));
      }
    });
  });

  it.each([
    ['without a code', Buffer.from([0xe0, 0x00]), 0x00],
    ['without properties', framed(0xe0, Buffer.from([0x8b])), 0x8b],
  ])('end a connection %s', async (_, packet, code) => {
    await withBroker(async (broker, open) => {
      const session = await open();
      hangUpWith(broker.peers.at(-1), packet);
      expect(await session.closed).toContain(codeInWords(code));
      expect(session.disconnect_code).toBe(code);
    });
  });

  it('refuse a message with their words', async () => {
    await withBroker(async (broker, open) => {
      const session = await open();
      for (const code of codes_of.puback) {
        broker.follow({
          onPublish: ({ packet_id }, peer) => {
            const length = Buffer.from([detail_property.length]);
            peer.write(framed(0x40, uint16(packet_id), Buffer.from([code]), length, detail_property));
          },
        });
        const puback = await session.publishAndWait({ topic: 'k1/a', payload: 'x', retain: false });
        const reason = code < 0x80 ? '' : codeInWords(code, { reasonString: detail });
        expect(puback).toEqual({ code, reason });
      }
      session.destroy('the test is over');
    });
  });

  it.each(['5', '3.1.1'] as const)('refuse a subscription of %s', async (protocol) => {
    await withBroker(async (broker, open) => {
      const session = await open(protocol);
      for (const code of protocol === '5' ? codes_of.suback : [0x80]) {
        broker.follow({
          onSubscribe: (packet_id, _, peer) => peer.write(suback(packet_id, [1, code], peer.version)),
        });
        expect([...(await session.subscribe(['a', 'b'], { rap: false }))]).toEqual([['b', code]]);
      }
      session.destroy('the test is over');
    });
  });
});
