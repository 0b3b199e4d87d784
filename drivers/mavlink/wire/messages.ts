/** The messages that this driver reads and writes: frames to fields, and fields to frames. */
import { checksum } from './checksum.ts';
import {
  baseLengths,
  type Definition,
  definitionOf,
  definitions,
  type MessageName,
  type Messages,
} from './definitions.ts';
import { readerOf, writeField } from './fields.ts';
import { type Frame, type MavlinkVersion, overhead_v1, overhead_v2, stx_v1, stx_v2 } from './frame.ts';
import type { SignFrame } from './signing.ts';

export type { MessageName, Messages } from './definitions.ts';

/** A message with its name: switch on `name` to know the fields. */
export type Decoded<N extends MessageName = MessageName> = {
  [K in N]: { readonly name: K; readonly fields: Messages[K] };
}[N];

interface Used {
  readonly full_length: number;
  readonly read: (view: DataView) => Decoded;
}

const scratch = new Uint8Array(256);
const view = new DataView(scratch.buffer);
const usedById = new Map<number, Used>(
  definitions.map((definition) => [
    definition.id,
    { full_length: definition.full_length, read: messageReader(definition) },
  ]),
);

function messageReader({ name, fields: layout }: Definition): (payload: DataView) => Decoded {
  const readers = layout.map((field) => ({ field: field.name, read: readerOf(field) }));
  return (payload) => {
    const fields: Record<string, unknown> = {};
    for (const { field, read } of readers) fields[field] = read(payload);
    const message = { name, fields };
    if (!isDecoded(message)) throw new RangeError(`${name} has no fields`);
    return message;
  };
}

/** Always so here: the type of each message is made from the layout that its fields are read by. */
function isDecoded(message: { readonly name: MessageName; readonly fields: object }): message is Decoded {
  return message.name !== undefined;
}

/** Decodes the message of a frame; undefined if the driver does not use it. */
export function decode(frame: Frame): Decoded | undefined {
  const used = usedById.get(frame.msgid);
  if (used === undefined) return undefined;
  fill(frame, used.full_length);
  return used.read(view);
}

/** Returns the fields of a message of which nothing is set: zeros and empty texts. */
export function blank<K extends MessageName>(name: K): Messages[K] {
  const { id, full_length } = definitionOf(name);
  scratch.fill(0, 0, full_length);
  const message = usedById.get(id)?.read(view);
  if (!message || !isNamed(message, name)) throw new RangeError(`${name} is not read`);
  return message.fields;
}

/** Always so where a message is filed under its own name. */
export function isNamed<K extends MessageName>(message: Decoded, name: K): message is Decoded & Decoded<K> {
  return message.name === name;
}

/** Copies a payload, with the zeros that MAVLink 2 cuts off. A loop costs less than calls for so few bytes. */
function fill({ source, payload_at, payload_length }: Frame, full_length: number): void {
  let at = 0;
  for (; at + 4 <= payload_length; at += 4) {
    const from = payload_at + at;
    scratch[at] = source[from] ?? 0;
    scratch[at + 1] = source[from + 1] ?? 0;
    scratch[at + 2] = source[from + 2] ?? 0;
    scratch[at + 3] = source[from + 3] ?? 0;
  }
  for (; at < payload_length; at++) scratch[at] = source[payload_at + at] ?? 0;
  for (; at < full_length; at++) scratch[at] = 0;
}

export interface Envelope {
  readonly sysid: number;
  readonly compid: number;
  /** Of this link and sender, 0 to 255. */
  readonly seq: number;
  /** MAVLink 2 only. */
  readonly sign?: SignFrame | undefined;
  /** 2 when omitted. */
  readonly version?: MavlinkVersion;
}

const signed_flag = 1;
const ids_v1_max = 0xff;

/** Whether a message exists in MAVLink 1, whose ids have 8 bits. */
export function isInMavlink1(name: MessageName): boolean {
  return definitionOf(name).id <= ids_v1_max;
}

/**
 * One frame. Throws RangeError for a field that does not fit its type: nothing is rounded, cut or replaced. NaN is allowed in
 * floats only, where it means "not given". MAVLink 1 has no extension fields and no signature.
 */
export function encode<K extends MessageName>(name: K, fields: Messages[K], envelope: Envelope): Uint8Array {
  const definition = definitionOf(name);
  const payload = payloadOf(definition, fields);
  const { sysid, compid, seq, sign, version = 2 } = envelope;
  for (const byte of [seq, sysid, compid]) {
    if (!Number.isInteger(byte) || byte < 0 || byte > 255)
      throw new RangeError(`${name}: ${byte} in the header is no byte`);
  }
  if (version === 1) return frameV1(definition, payload, envelope);
  let length = payload.length;
  while (length > 1 && payload[length - 1] === 0) length--;
  const frame = new Uint8Array(overhead_v2 + length);
  const { id, crc_extra } = definition;
  const header = [length, sign ? signed_flag : 0, 0, seq, sysid, compid];
  frame.set([stx_v2, ...header, id & 0xff, (id >>> 8) & 0xff, id >>> 16]);
  frame.set(payload.subarray(0, length), 10);
  close(frame, crc_extra);
  return sign ? sign(frame) : frame;
}

function payloadOf(
  { name, full_length, fields: layout }: Definition,
  values: Readonly<Record<string, unknown>>,
): Uint8Array {
  const payload = new DataView(new ArrayBuffer(full_length));
  for (const field of layout) writeField(payload, field, values[field.name], name);
  return new Uint8Array(payload.buffer);
}

function frameV1(
  { id, name, crc_extra }: Definition,
  payload: Uint8Array,
  { sysid, compid, seq }: Envelope,
): Uint8Array {
  if (id > ids_v1_max) throw new RangeError(`${name} does not exist in MAVLink 1`);
  const length = baseLengths[id] ?? 0;
  const frame = new Uint8Array(overhead_v1 + length);
  frame.set([stx_v1, length, seq, sysid, compid, id]);
  frame.set(payload.subarray(0, length), 6);
  close(frame, crc_extra);
  return frame;
}

/** Writes the checksum of everything before it. */
function close(frame: Uint8Array, crc_extra: number): void {
  const end = frame.length - 2;
  const crc = checksum(frame, 1, end, crc_extra);
  frame.set([crc & 0xff, crc >>> 8], end);
}
