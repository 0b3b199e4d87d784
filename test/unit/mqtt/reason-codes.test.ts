/** Every code that a broker may send (MQTT 5 section 2.4, MQTT 3.1.1 sections 3.2.2.3 and 3.9.3) reaches people in words. */
import { describe, expect, it } from 'vitest';
import { codeInWords, reasonOf } from '../../../src/mqtt/codes.ts';
import { openSession, type Session } from '../../../src/mqtt/session.ts';
import {
  framed,
  type Peer,
  property,
  type ScriptedBroker,
  startScriptedBroker,
  string,
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
});
