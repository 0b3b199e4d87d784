/** The messages that this driver reads and writes: frames to fields, and fields to frames. */
import { checksum } from './checksum.ts';
import { commandDecoders } from './command-messages.ts';
import { baseLengths, type Definition, definitionOf } from './definitions.ts';
import { writeField } from './field-writers.ts';
import { type Frame, type MavlinkVersion, overhead_v1, overhead_v2, stx_v1, stx_v2 } from './frame.ts';
import { identityDecoders } from './identity-messages.ts';
import type { SignFrame } from './signing.ts';
import { missionDecoders } from './mission-messages.ts';
import { parameterDecoders } from './parameter-messages.ts';
import { telemetryDecoders } from './telemetry-messages.ts';

const decoders = {
  ...telemetryDecoders,
  ...identityDecoders,
  ...commandDecoders,
  ...missionDecoders,
  ...parameterDecoders,
};

/**
 * Fields by message, named as in the XML, in the raw units of the wire; sentinels and NaN are as they came. 64-bit
 * integers are numbers, exact up to 2^53; a `uid` is 16 hexadecimal digits. Texts end at their NUL.
 */
export type Messages = {
  readonly [K in keyof typeof decoders]: Readonly<ReturnType<(typeof decoders)[K]>>;
};
export type MessageName = keyof Messages;
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
  Object.keys(decoders)
    .filter(isMessageName)
    .map((name) => {
      const { id, full_length } = knownDefinition(name);
      return [id, { full_length, read: readerOf(name) }];
    }),
);

function isMessageName(name: string): name is MessageName {
  return Object.hasOwn(decoders, name);
}

/** The table with name and fields of each entry tied together, which a union of its entries would lose. */
function readerOf<K extends MessageName>(name: K): (payload: DataView) => Decoded<K> {
  const byName: { readonly [N in MessageName]: (payload: DataView) => Messages[N] } = decoders;
  const fieldsOf = byName[name];
  return (payload) => ({ name, fields: fieldsOf(payload) });
}

/** Decodes the message of a frame; undefined if the driver does not use it. */
export function decode(frame: Frame): Decoded | undefined {
  const used = usedById.get(frame.msgid);
  if (used === undefined) return undefined;
  fill(frame, used.full_length);
  return used.read(view);
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
  return knownDefinition(name).id <= ids_v1_max;
}

/**
 * One frame. Throws RangeError for a field that does not fit its type: nothing is rounded, cut or replaced. NaN is allowed in
 * floats only, where it means "not given". MAVLink 1 has no extension fields and no signature.
 */
export function encode<K extends MessageName>(name: K, fields: Messages[K], envelope: Envelope): Uint8Array {
  const definition = knownDefinition(name);
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
  for (const field of layout) writeField(payload, field, { message: name, value: values[field.name] });
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

/** Every message of this driver is defined; the tests would not load otherwise. */
function knownDefinition(name: string): Definition {
  const definition = definitionOf(name);
  if (definition === undefined) throw new RangeError(`the dialects do not define ${name}`);
  return definition;
}
