import { describe, expect, it } from 'vitest';
import { FrameFilter, MalformedPacket, type Oversize, type PubackPacket } from '../../../src/mqtt/frames.ts';
import { framed, property, string, uint16 } from '../../support/brokers/scripted-broker.ts';

const publish = (topic: string, payload: Buffer, id = 7): Buffer =>
  framed(0x32, string(topic), uint16(id), Buffer.from([0]), payload);
const puback = framed(0x40, uint16(3));

function filter(packet_bytes_max: number, protocol: '5' | '3.1.1' = '5') {
  const oversize: Oversize[] = [];
  const skipped: Oversize[] = [];
  const pubacks: PubackPacket[] = [];
  const messages: string[] = [];
  const frames = new FrameFilter({
    protocol,
    packet_bytes_max,
    onOversize: (message) => oversize.push(message),
    onSkipped: (message) => skipped.push(message),
    isHeld: () => false,
    onMessage: ({ topic, payload }) => messages.push(`${topic} ${payload.length}`),
    onPuback: (puback) => pubacks.push(puback),
  });
  const pass = (bytes: Buffer, piece_bytes: number): Buffer => {
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += piece_bytes) {
      out.push(...frames.push(bytes.subarray(at, at + piece_bytes)));
    }
    return Buffer.concat(out);
  };
  return { frames, pass, oversize, skipped, pubacks, messages };
}

describe('FrameFilter', () => {
  it.each([1, 2, 3, 7, 1_000])(
    'decodes messages and PUBACKs and passes on all others unchanged, in pieces of %i bytes',
    (piece) => {
      const suback = framed(0x90, uint16(5), Buffer.from([0, 1]));
      const qos_2 = framed(0x34, string('k1/x/down/task'), uint16(8), Buffer.from([0]));
      const { pass, messages, pubacks } = filter(1_000);
      const bytes = Buffer.concat([
        puback,
        suback,
        publish('k1/x/down/config', Buffer.alloc(300, 1)),
        qos_2,
        puback,
        framed(0xd0),
      ]);
      expect(pass(bytes, piece)).toEqual(Buffer.concat([suback, qos_2, framed(0xd0)]));
      expect(messages).toEqual(['k1/x/down/config 300']);
      expect(pubacks.map(({ packet_id }) => packet_id)).toEqual([3, 3]);
    },
  );

  it.each([1, 3, 1_000])(
    'decodes the code and the reason of each PUBACK in their order, in pieces of %i bytes',
    (piece) => {
      const { pass, pubacks } = filter(1_000);
      const reason = property(0x1f, string('no such tenant'));
      const bytes = Buffer.concat([
        framed(0x40, uint16(1), Buffer.from([0x87, reason.length]), reason),
        framed(0x40, uint16(2)),
        framed(0x40, uint16(3), Buffer.from([0x10])),
      ]);
      expect(pass(bytes, piece)).toHaveLength(0);
      expect(pubacks).toMatchObject([
        { packet_id: 1, code: 0x87, details: { reasonString: 'no such tenant' } },
        { packet_id: 2, code: 0 },
        { packet_id: 3, code: 0x10 },
      ]);
    },
  );

  it('refuses a message with a topic alias, which was not agreed on', () => {
    const alias = property(0x23, uint16(1));
    const message = framed(0x30, string(''), Buffer.from([alias.length]), alias, Buffer.from('x'));
    expect(() => filter(1_000).pass(message, 1_000)).toThrow(MalformedPacket);
  });

  it.each([1, 5, 64, 10_000])('reads past a message over the limit, in pieces of %i bytes', (piece) => {
    const { pass, oversize, skipped, pubacks } = filter(1_000);
    const large = publish('k1/x/down/config', Buffer.alloc(5_000));
    const ping = framed(0xd0);
    expect(pass(Buffer.concat([ping, large, ping, puback]), piece)).toEqual(Buffer.concat([ping, ping]));
    expect(pubacks).toHaveLength(1);
    expect(oversize).toEqual([{ topic: 'k1/x/down/config', bytes: large.length, packet_id: 7 }]);
    expect(skipped).toEqual(oversize);
  });

  it('keeps only the topic of a message that is too large', () => {
    const { frames } = filter(1_000);
    const header = Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f]);
    frames.push(Buffer.concat([header, string('a/b'), uint16(1)]));
    for (let n = 0; n < 100; n++) expect(frames.push(Buffer.alloc(65_536))).toEqual([]);
    expect(frames.skipping?.topic).toBe('a/b');
  });

  it.each([
    ['PUBACK', framed(0x40)],
    ['PUBREC', framed(0x50, Buffer.from([1]))],
    ['PUBREL', framed(0x62)],
    ['PUBCOMP', framed(0x70, Buffer.from([1]))],
    ['SUBACK', framed(0x90, uint16(1))],
    ['UNSUBACK', framed(0xb0)],
    ['CONNACK', framed(0x20, Buffer.from([0]))],
    ['PUBLISH without a topic', framed(0x30)],
    ['PUBLISH that ends in its topic', framed(0x30, uint16(5), Buffer.from('k1'))],
    ['PUBLISH without its packet id', framed(0x32, string('k1/x/down/task'))],
    ['PUBLISH with half a packet id', framed(0x34, string('k1/x/down/task'), Buffer.from([1]))],
  ] as const)('refuses a %s that ends too early, which would end the process', (_name, bytes) => {
    for (const protocol of ['5', '3.1.1'] as const)
      for (const piece of [1, 1_000])
        expect(() => filter(1_000, protocol).pass(Buffer.concat([bytes, puback]), piece)).toThrow(
          MalformedPacket,
        );
  });

  it('completes a DISCONNECT that ends early, as MQTT 5 allows', () => {
    expect(filter(100).pass(Buffer.from([0xe0, 0]), 1)).toEqual(Buffer.from([0xe0, 2, 0, 0]));
    expect(filter(100).pass(Buffer.from([0xe0, 1, 0x8b]), 1)).toEqual(Buffer.from([0xe0, 2, 0x8b, 0]));
  });

  it('reports a PUBACK code that MQTT 5 does not list, and reads on behind it', () => {
    const { pass, pubacks } = filter(100);
    const foreign = framed(0x40, uint16(258), Buffer.from([0x95, 3, 1, 2, 3]));
    expect(pass(Buffer.concat([foreign, puback]), 1)).toHaveLength(0);
    expect(pubacks).toEqual([
      { packet_id: 258, code: 0x95 },
      { packet_id: 3, code: 0 },
    ]);
  });

  it.each([
    ['a packet type that does not exist', Buffer.from([0x00, 0])],
    ['a packet type that only clients send', Buffer.from([0x10, 0])],
    ['reserved flags', Buffer.from([0x41, 2, 0, 1])],
    ['QoS 3', Buffer.from([0x36, 0])],
    ['a length of five bytes', Buffer.from([0x40, 0xff, 0xff, 0xff, 0xff, 0x01])],
    ['an endless packet that is no message', Buffer.from([0x20, 0xff, 0xff, 0xff, 0x7f])],
    [
      'a message that ends within its topic',
      Buffer.concat([Buffer.from([0x32, 0x81, 0x0f]), uint16(65_535)]),
    ],
  ])('rejects %s', (_, bytes) => {
    expect(() => filter(1_000).frames.push(bytes)).toThrow(MalformedPacket);
  });
});
