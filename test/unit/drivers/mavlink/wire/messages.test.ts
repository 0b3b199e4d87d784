/** Messages are read and written as node-mavlink does it, which serves as the independent witness here. */
import {
  type Arbitrary,
  array,
  assert,
  float,
  integer,
  maxSafeInteger,
  property,
  record,
  sample,
  string,
  uint8Array,
} from 'fast-check';
import {
  ardupilotmega,
  common,
  type MavLinkData,
  type MavLinkDataConstructor,
  type MavLinkPacket,
  MavLinkPacketParser,
  MavLinkPacketSplitter,
  minimal,
  standard,
} from 'node-mavlink';
import { describe, expect, it } from 'vitest';
import { crcExtraOf, definitionOf, definitions } from '../../../../../drivers/mavlink/wire/definitions.ts';
import type { Field } from '../../../../../drivers/mavlink/wire/fields.ts';
import {
  decode,
  encode,
  type MessageName,
  type Messages,
} from '../../../../../drivers/mavlink/wire/messages.ts';
import { excerpt, framesOfDatagram } from '../frames.ts';

const names = definitions.map(({ name }) => name);
/** Its value is the bits of a float for us, and the float for node-mavlink. */
const own_layouts: readonly string[] = ['PARAM_SET', 'PARAM_VALUE'];
const library = new Map(
  [minimal, standard, common, ardupilotmega]
    .flatMap(({ REGISTRY }): MavLinkDataConstructor<MavLinkData>[] => Object.values(REGISTRY))
    .map((message) => [message.MSG_NAME, message] as const)
    .filter(([name]) => !own_layouts.includes(name)),
);
const envelope = { sysid: 7, compid: 9, seq: 200 };

describe.each(names.filter((name) => library.has(name)))('%s', (name) => {
  const Message = library.get(name)!;

  it('is encoded so that node-mavlink reads each field, and decoded as it was', () => {
    assert(
      property(fieldsOf(name), (fields) => {
        const [data] = readByLibrary(encode(name, fields, envelope), Message);
        const read = Message.FIELDS.map(({ source, name: camel }) => [
          source,
          plain(name, source, data?.[camel]),
        ]);
        expect(Object.fromEntries(read)).toEqual(fields);
        expect(decode(onlyFrame(encode(name, fields, envelope)))).toEqual({ name, fields });
      }),
      { numRuns: 25 },
    );
  });
});

it('Only messages that node-mavlink lacks have our definitions, and they decode as encoded', () => {
  const unknown = names.filter((name) => !library.has(name));
  const events = ['EVENT', 'CURRENT_EVENT_SEQUENCE', 'REQUEST_EVENT', 'RESPONSE_EVENT_ERROR'];
  expect(unknown).toEqual([...events, 'COMPONENT_METADATA', ...own_layouts]);
  for (const name of unknown) {
    for (const fields of sample(fieldsOf(name), 25))
      expect(decode(onlyFrame(encode(name, fields, envelope)))).toEqual({ name, fields });
  }
});

it.each(['arducopter', 'px4'])(
  'The recorded messages of %s are encoded again to identical bytes',
  (recording) => {
    const { frames } = framesOfDatagram(excerpt(recording).tlog);
    const used = frames.flatMap((frame) => {
      const message = decode(frame);
      if (message === undefined) return [];
      const { sysid, compid, seq } = frame;
      return [[encode(message.name, message.fields, { sysid, compid, seq }), Uint8Array.from(frame.bytes)]];
    });
    expect(used.length).toBeGreaterThan(50);
    for (const [written, recorded] of used) expect(written).toEqual(recorded);
  },
);

it('A message that the driver does not use is not decoded', () => {
  const frames = framesOfDatagram(excerpt('px4').tlog).frames;
  const actuator_control = frames.find(({ msgid }) => msgid === 83);
  expect(actuator_control && decode(actuator_control)).toBeUndefined();
});

const ack: Messages['COMMAND_ACK'] = {
  command: 400,
  result: 0,
  progress: 0,
  result_param2: 0,
  target_system: 0,
  target_component: 0,
};

it.each([
  ['command', Number.NaN],
  ['command', 70_000],
  ['command', -1],
  ['command', 1.5],
  ['result', undefined],
  ['result', '4'],
  ['result_param2', 2 ** 31],
])('a value that the field %s cannot hold (%s) is refused, not replaced', (field, value) => {
  const fields = { ...ack, [field]: value } as Messages['COMMAND_ACK'];
  expect(() => encode('COMMAND_ACK', fields, envelope)).toThrow(new RegExp(`^COMMAND_ACK\\.${field}: `));
});

it('A text that is too long and an array of another length are refused', () => {
  const text = { severity: 4, text: 'é'.repeat(26), id: 0, chunk_seq: 0 };
  expect(() => encode('STATUSTEXT', text, envelope)).toThrow(RangeError);
  const [event] = sample(fieldsOf('EVENT'), 1);
  expect(() => encode('EVENT', { ...event!, arguments: Array(41).fill(1) }, envelope)).toThrow(RangeError);
});

it('A float may be NaN, which means "not given", but no value outside float32', () => {
  const [fields] = sample(fieldsOf('COMMAND_INT'), 1);
  const frame = onlyFrame(encode('COMMAND_INT', { ...fields!, param4: Number.NaN }, envelope));
  expect(decode(frame)?.fields).toMatchObject({ param4: Number.NaN });
  for (const param4 of [1e39, Number.POSITIVE_INFINITY])
    expect(() => encode('COMMAND_INT', { ...fields!, param4 }, envelope)).toThrow(RangeError);
});

it('A sender id outside a byte is refused', () => {
  for (const bad of [256, -1, 0.5, Number.NaN])
    expect(() => encode('COMMAND_ACK', ack, { ...envelope, sysid: bad })).toThrow(RangeError);
});

it('A payload of zeros keeps its first byte', () => {
  const none = { ...ack, command: 0 };
  expect(onlyFrame(encode('COMMAND_ACK', none, envelope)).payload_length).toBe(1);
});

it('Any payload is decoded without an exception, and never as BigInt', () => {
  assert(
    property(uint8Array({ minLength: 255, maxLength: 255 }), (noise) => {
      for (const name of names) {
        const { id, crc_extra } = definitionOf(name);
        expect(crc_extra).toBe(crcExtraOf(id));
        const frame = {
          ...envelope,
          version: 2,
          msgid: id,
          signed: false,
          signature_ok: null,
          payload: noise,
          bytes: noise,
          source: noise,
          payload_at: 0,
          payload_length: noise.length,
        } as const;
        expect(() => JSON.stringify(decode(frame))).not.toThrow();
      }
    }),
    { numRuns: 30 },
  );
});

function onlyFrame(bytes: Uint8Array) {
  const { frames } = framesOfDatagram(bytes);
  expect(frames).toHaveLength(1);
  return frames[0]!;
}

/** Random values for every field of a message, all of which survive the way over the wire. */
function fieldsOf<K extends MessageName>(name: K): Arbitrary<Messages[K]> {
  const { fields } = definitionOf(name);
  const entries = fields.map((field): [string, Arbitrary<unknown>] => [field.name, valueOf(field)]);
  return record(Object.fromEntries(entries)) as Arbitrary<Messages[K]>;
}

function valueOf({ type, length }: Field): Arbitrary<unknown> {
  if (type === 'char' || type === 'chunk') return textOf(length);
  if (type === 'hex64') return hexDigits;
  const each = numberOf(type);
  return length > 0 ? array(each, { minLength: length, maxLength: length }) : each;
}

const hexDigits = array(integer({ min: 0, max: 15 }), { minLength: 16, maxLength: 16 }).map((digits) =>
  digits.map((digit) => digit.toString(16)).join(''),
);

function textOf(length: number): Arbitrary<string> {
  return string({ unit: 'grapheme-ascii', maxLength: length }).map((text) => text.trim());
}

const bits: Readonly<Record<string, number>> = { 8: 8, 16: 16, 32: 32 };

function numberOf(type: string): Arbitrary<number> {
  if (type === 'float') return float({ noDefaultInfinity: true }).map((value) => value + 0);
  if (type === 'int64_t') return maxSafeInteger();
  if (type === 'uint64_t') return maxSafeInteger().map(Math.abs);
  const width = bits[type.replaceAll(/\D/g, '')]!;
  return type.startsWith('u')
    ? integer({ min: 0, max: 2 ** width - 1 })
    : integer({ min: -(2 ** (width - 1)), max: 2 ** (width - 1) - 1 });
}

/** What node-mavlink makes of a frame, by its own names of the fields. */
function readByLibrary(frame: Uint8Array, Message: MavLinkDataConstructor<MavLinkData>) {
  const splitter = new MavLinkPacketSplitter();
  const parser = new MavLinkPacketParser();
  const read: Readonly<Record<string, unknown>>[] = [];
  parser.on('data', ({ protocol, payload }: MavLinkPacket) =>
    read.push(Object.fromEntries(Object.entries(protocol.data(payload, Message)))),
  );
  splitter.pipe(parser);
  splitter.write(Buffer.from(frame));
  return read;
}

/** The names of a camera are arrays of bytes for node-mavlink, and texts for us. */
function isByteText(name: string, field: string): boolean {
  return name === 'CAMERA_INFORMATION' && (field === 'vendor_name' || field === 'model_name');
}

/** A value of node-mavlink as we have it. */
function plain(name: string, field: string, value: unknown): unknown {
  if (typeof value === 'bigint')
    return field === 'uid' ? value.toString(16).padStart(16, '0') : Number(value);
  if (isByteText(name, field))
    return Buffer.from(value as number[])
      .toString()
      .replace(/\0.*/s, '');
  return value;
}
