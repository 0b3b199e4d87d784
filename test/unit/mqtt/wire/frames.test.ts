import { describe, expect, it } from 'vitest';
import { FrameFilter, MalformedPacket, type Oversize } from '../../../../src/mqtt/wire/frames.ts';
import { framed, string, uint16 } from '../../../support/brokers/scripted-broker.ts';

const publish = (topic: string, payload: Buffer, id = 7): Buffer =>
  framed(0x32, string(topic), uint16(id), Buffer.from([0]), payload);
const puback = framed(0x40, uint16(3));

function filter(packet_bytes_max: number, protocol: '5' | '3.1.1' = '5') {
  const oversize: Oversize[] = [];
  const skipped: Oversize[] = [];
  const foreign: [number, number][] = [];
  const expected = new Set<number>();
  const taken: number[] = [];
  const frames = new FrameFilter({
    protocol,
    packet_bytes_max,
    onOversize: (message) => oversize.push(message),
    onSkipped: (message) => skipped.push(message),
    onForeignCode: (id, code) => foreign.push([id, code]),
    takesPuback: (id) => expected.has(id),
  });
  const pass = (bytes: Buffer, piece_bytes: number): Buffer => {
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += piece_bytes) {
      out.push(...frames.push(bytes.subarray(at, at + piece_bytes)));
      taken.push(...frames.takePubacks());
    }
    return Buffer.concat(out);
  };
  return { frames, pass, oversize, skipped, foreign, expected, taken };
}

describe('FrameFilter', () => {
  it.each([1, 2, 3, 7, 1_000])(
    'passes packets within the limit unchanged, in pieces of %i bytes',
    (piece) => {
      const bytes = Buffer.concat([
        puback,
        publish('k1/x/down/config', Buffer.alloc(300, 1)),
        puback,
        framed(0xd0),
      ]);
      expect(filter(1_000).pass(bytes, piece)).toEqual(bytes);
    },
  );

  it('takes the PUBACKs that are expected, and passes on all others and what stands between them', () => {
    const { pass, expected, taken } = filter(1_000);
    for (const id of [1, 2, 3]) expected.add(id);
    const [first, second, third, other] = [1, 2, 3, 4].map((id) => framed(0x40, uint16(id)));
    const message = publish('k1/x/down/ack', Buffer.from('{}'));
    const bytes = Buffer.concat(
      [first, message, second, framed(0xd0), third, other].flatMap((it) => it ?? []),
    );
    const passed = Buffer.concat([message, framed(0xd0), other].flatMap((it) => it ?? []));
    expect(pass(bytes, bytes.length)).toEqual(passed);
    expect(taken).toEqual([1, 2, 3]);
  });

  it('passes on the PUBACKs behind one that it passed on until that one was handled', () => {
    const { frames, pass, expected, taken } = filter(1_000);
    for (const id of [1, 2, 3]) expected.add(id);
    const refused = framed(0x40, uint16(1), Buffer.from([0x87]));
    const accepted = framed(0x40, uint16(2));
    // The first one in two pieces, which counts once.
    expect(pass(Buffer.concat([refused, accepted]), 3)).toEqual(Buffer.concat([refused, accepted]));
    frames.pubackHandled();
    const next = framed(0x40, uint16(3));
    expect(pass(next, 4)).toEqual(next);
    frames.pubackHandled();
    frames.pubackHandled();
    expect(pass(next, 4)).toHaveLength(0);
    expect(taken).toEqual([3]);
  });

  it.each([1, 5, 64, 10_000])('reads past a message over the limit, in pieces of %i bytes', (piece) => {
    const { pass, oversize, skipped } = filter(1_000);
    const large = publish('k1/x/down/config', Buffer.alloc(5_000));
    expect(pass(Buffer.concat([puback, large, puback]), piece)).toEqual(Buffer.concat([puback, puback]));
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

  it('reports a PUBACK code that MQTT 5 does not list, and passes it on as unspecified error', () => {
    const { pass, foreign } = filter(100);
    expect(pass(framed(0x40, uint16(258), Buffer.from([0x95, 0])), 1)).toEqual(
      framed(0x40, uint16(258), Buffer.from([0x80, 0])),
    );
    expect(foreign).toEqual([[258, 0x95]]);
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
