/** Frames are found in every kind of bytes: recordings, pieces, garbage, cut datagrams. */
import { constantFrom, integer } from 'fast-check';
import { expect, it } from 'vitest';
import { checksum } from '../../../../../drivers/mavlink/wire/checksum.ts';
import { bytesOf, excerpt, framesOfDatagram, framesOfStream, heartbeat, pieces } from '../frames.ts';
import { forAll } from '../../../../support/for-all.ts';
import { frame_length_max } from '../../../../../drivers/mavlink/wire/frame.ts';
import { fuzz } from './fuzz.ts';

const recordings = ['arducopter', 'px4'] as const;

it.each(recordings)('The framer finds every frame of the recording of %s and no others', (name) => {
  const { tlog, frames } = excerpt(name);
  expect(frames.length).toBeGreaterThan(100);
  expect(bytesOf(framesOfStream([tlog]).frames)).toEqual(frames);
  expect(bytesOf(framesOfDatagram(tlog).frames)).toEqual(frames);
});

it.each([0xfd, 0xfe])(
  'The framer returns a frame behind the stray start byte %i when the line is quiet',
  (stray) => {
    const stream = framesOfStream([Buffer.of(stray), heartbeat(7)]);
    stream.framer.stalled();
    expect(stream.frames.map(({ seq }) => seq)).toEqual([7]);
    expect(stream.framer.pending).toBe(0);
  },
);

it('The framer keeps the beginning of a frame when the line is quiet', () => {
  const whole = heartbeat(3);
  const stream = framesOfStream([whole.subarray(0, 12)]);
  stream.framer.stalled();
  stream.framer.push(whole.subarray(12));
  expect(stream.frames.map(({ seq }) => seq)).toEqual([3]);
});

it('The framer discards a frame that is cut off at the end of its datagram', () => {
  const whole = heartbeat();
  expect(framesOfDatagram(whole.subarray(0, -1)).frames).toEqual([]);
  expect(framesOfDatagram(Buffer.concat([heartbeat(1), heartbeat(2)])).frames).toHaveLength(2);
});

it('The framer counts an unknown message and finds the next frame', () => {
  const unknown = Buffer.concat([
    Buffer.of(0xfd, 4, 0, 0, 0, 1, 1, 0x39, 0x30, 0),
    Buffer.of(1, 2, 3, 4, 5, 6),
  ]);
  const found = framesOfDatagram(Buffer.concat([unknown, heartbeat(9)]));
  expect(found.unknown_ids).toEqual([12_345]);
  expect(found.frames.map(({ seq }) => seq)).toEqual([9]);
});

/** Of message 12345 and, in MAVLink 1, 79, which no dialect has; the checksum is any. */
const foreign_v2 = Buffer.of(0xfd, 4, 0, 0, 5, 1, 1, 0x39, 0x30, 0, 1, 2, 3, 4, 5, 6);
const foreign_v1 = Buffer.of(0xfe, 2, 5, 1, 1, 79, 1, 2, 5, 6);

it.each([foreign_v1, foreign_v2])('The framer passes on an unknown frame whose end is known', (foreign) => {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  const passed: string[] = [];
  const pass = ({ bytes }: { readonly bytes: Uint8Array }): void => void passed.push(hex(bytes));
  const line = Buffer.concat([heartbeat(1), foreign, heartbeat(2), foreign]);
  const all = [hex(foreign), hex(foreign)];
  expect(framesOfDatagram(line, pass)).toMatchObject({ skipped: 0, frames: [{ seq: 1 }, { seq: 2 }] });
  expect(passed.splice(0)).toEqual(all);
  expect(framesOfStream(pieces(line, [3, 1, 7]), pass).frames.map(({ seq }) => seq)).toEqual([1, 2]);
  expect(passed.splice(0)).toEqual(all);
  // Cut off, or followed by anything else: its length may be no length.
  framesOfDatagram(foreign.subarray(0, -1), pass);
  framesOfDatagram(Buffer.concat([foreign, Buffer.of(7)]), pass);
  expect(passed).toEqual([]);
});

it('The framer hides no verified frame within what looks like an unknown one', () => {
  const inner = heartbeat(3);
  const around = Buffer.concat([Buffer.of(0xfd, inner.length, 0, 0, 5, 1, 1, 0x39, 0x30, 0), inner]);
  const whole = Buffer.concat([around, Buffer.of(1, 2)]);
  const passed: unknown[] = [];
  for (const found of [
    framesOfDatagram(whole, (frame) => passed.push(frame)),
    framesOfStream([whole], (frame) => passed.push(frame)),
  ])
    expect(found.frames.map(({ seq }) => seq)).toEqual([3]);
  expect(passed).toEqual([]);
});

it('The framer finds a message in its older definition too', () => {
  const frameOf = (crc_extra: number): Buffer => {
    const frame = Buffer.concat([
      Buffer.of(0xfd, 24, 0, 0, 0, 1, 1, 369 & 0xff, 369 >> 8, 0),
      Buffer.alloc(26, 7),
    ]);
    frame.writeUInt16LE(checksum(frame, 1, frame.length - 2, crc_extra), frame.length - 2);
    return frame;
  };
  expect([145, 151, 152].map((crc_extra) => framesOfDatagram(frameOf(crc_extra)).frames.length)).toEqual([
    1, 1, 0,
  ]);
});

it('The framer discards a frame with an unknown incompatibility flag', () => {
  const frame = Buffer.from(heartbeat());
  frame[2] = 2;
  frame.writeUInt16LE(checksum(frame, 1, frame.length - 2, 50), frame.length - 2);
  expect(framesOfDatagram(frame).frames).toEqual([]);
  frame[2] = 0;
  frame.writeUInt16LE(checksum(frame, 1, frame.length - 2, 50), frame.length - 2);
  expect(framesOfDatagram(frame).frames).toHaveLength(1);
});

it('The framer detects any flipped bit of a frame', () => {
  const whole = heartbeat();
  forAll(integer({ min: 0, max: whole.length * 8 - 1 }), (bit) => {
    const frame = Buffer.from(whole);
    frame[bit >> 3] = (frame[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(framesOfDatagram(frame).frames).toEqual([]);
  });
});

it.each([
  ['as MAVLink 1 has it', 3],
  ['with the extensions that some senders append', 10],
])('a MAVLink 1 frame is found %s', (_, length) => {
  const frame = mavlink1(77, Buffer.alloc(length, 1), 143);
  expect(framesOfDatagram(frame).frames).toMatchObject([
    { version: 1, seq: 5, sysid: 1, compid: 1, msgid: 77, signed: false, payload_length: length },
  ]);
});

it('The framer discards a MAVLink 1 frame of any other length, even with a correct checksum', () => {
  forAll(constantFrom(0, 1, 2, 4, 9, 11, 255), (length) => {
    expect(framesOfDatagram(mavlink1(77, Buffer.alloc(length, 1), 143)).frames).toEqual([]);
  });
});

function mavlink1(msgid: number, payload: Buffer, crc_extra: number): Buffer {
  const frame = Buffer.concat([Buffer.of(0xfe, payload.length, 5, 1, 1, msgid), payload, Buffer.alloc(2)]);
  frame.writeUInt16LE(checksum(frame, 1, frame.length - 2, crc_extra), frame.length - 2);
  return frame;
}

it.each([1, 2, 3])(
  '300,000 bytes of frames, spoiled frames and noise (seed %i) cost no intact frame',
  (seed) => {
    const { intact, found, invented, pending_max } = fuzz({ seed, bytes: 300_000 });
    expect(intact).toBeGreaterThan(1_000);
    expect(found).toBe(intact);
    expect(invented).toBeLessThan(3);
    expect(pending_max).toBeLessThan(frame_length_max);
  },
);
