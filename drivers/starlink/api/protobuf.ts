/**
 * Reads and writes the little of Protocol Buffers that a dish needs. Pure. Unknown fields are skipped; whatever breaks the
 * encoding is a `DeviceUnreachable`, since nothing after it can be trusted.
 * https://protobuf.dev/programming-guides/encoding/
 */
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';

/** Fields of one message, by number, in the order they came. A field of another type than asked for counts as absent. */
export type Fields = ReadonlyMap<number, readonly Field[]>;

type Field =
  | { readonly type: 'varint'; readonly value: number }
  | { readonly type: 'fixed32' | 'fixed64' | 'bytes'; readonly bytes: Uint8Array };

/** Far above what a dish sends, far below what would hurt: 16,384 in each message of an answer took 0.1 s. */
export const fields_max = 4_096;
const varint_bytes_max = 10;
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
const utf8 = new TextDecoder('utf-8');

/** Splits one message into its fields; nested ones stay bytes until `message` is asked for them. */
export function decode(bytes: Uint8Array): Fields {
  const fields = new Map<number, Field[]>();
  let at = 0;
  for (let count = 0; at < bytes.length; count += 1) {
    if (count === fields_max) throw malformed(texts.too_many_fields(fields_max));
    const tag = readVarint(bytes, at);
    const number = Math.floor(tag.value / 8);
    if (number === 0) throw malformed(texts.field_0);
    const { field, end } = readField(bytes, tag.end, tag.value % 8);
    const same = fields.get(number);
    if (same) same.push(field);
    else fields.set(number, [field]);
    at = end;
  }
  return fields;
}

function readField(bytes: Uint8Array, at: number, type: number): { field: Field; end: number } {
  if (type === wire.varint) {
    const { value, end } = readVarint(bytes, at);
    return { field: { type: 'varint', value }, end };
  }
  if (type === wire.fixed32) return slice(bytes, at, 4, 'fixed32');
  if (type === wire.fixed64) return slice(bytes, at, 8, 'fixed64');
  if (type !== wire.bytes) throw malformed(texts.wire_type(type));
  const length = readVarint(bytes, at);
  return slice(bytes, length.end, length.value, 'bytes');
}

function slice(bytes: Uint8Array, at: number, length: number, type: 'fixed32' | 'fixed64' | 'bytes') {
  if (length > bytes.length - at) throw malformed(texts.field_cut);
  return { field: { type, bytes: bytes.subarray(at, at + length) }, end: at + length };
}

/** Beyond 2^53 the number is not exact; no counter that is read here comes near. */
function readVarint(bytes: Uint8Array, at: number): { value: number; end: number } {
  let value = 0;
  for (let index = 0; index < varint_bytes_max; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) throw malformed(texts.number_cut);
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: at + index + 1 };
  }
  throw malformed(texts.number_endless);
}

function malformed(what: string): DeviceUnreachable {
  return new DeviceUnreachable(texts.malformed(what));
}

/** An unsigned integer or an enum. */
export function uint(fields: Fields, number: number): number | undefined {
  const field = last(fields, number);
  return field?.type === 'varint' ? field.value : undefined;
}

/** A bool; proto3 leaves out what is false. */
export function bool(fields: Fields, number: number): boolean {
  return (uint(fields, number) ?? 0) !== 0;
}

/** A float or a double that is a finite number. */
export function real(fields: Fields, number: number): number | undefined {
  const field = last(fields, number);
  if (field?.type !== 'fixed32' && field?.type !== 'fixed64') return undefined;
  const view = viewOf(field.bytes);
  const value = field.type === 'fixed32' ? view.getFloat32(0, true) : view.getFloat64(0, true);
  return Number.isFinite(value) ? value : undefined;
}

/** Text without control characters, at most `length_max` characters; undefined when there is none. */
export function text(fields: Fields, number: number, length_max = 64): string | undefined {
  const field = last(fields, number);
  if (field?.type !== 'bytes') return undefined;
  const plain = utf8.decode(field.bytes.subarray(0, length_max * 4)).replaceAll(/\p{C}/gu, '');
  return plain === '' ? undefined : plain.slice(0, length_max);
}

/** A nested message; undefined when there is none. */
export function message(fields: Fields, number: number): Fields | undefined {
  const field = last(fields, number);
  return field?.type === 'bytes' ? decode(field.bytes) : undefined;
}

/** A repeated float, packed or not. What is not finite is NaN, so that the places of the others stay. */
export function floats(fields: Fields, number: number): readonly number[] {
  return (fields.get(number) ?? []).flatMap((field) => {
    if (field.type !== 'bytes' && field.type !== 'fixed32') return [];
    const view = viewOf(field.bytes);
    return Array.from({ length: Math.floor(field.bytes.length / 4) }, (_, index) =>
      view.getFloat32(index * 4, true),
    );
  });
}

/** The last one counts when a single field came several times. */
function last(fields: Fields, number: number): Field | undefined {
  return fields.get(number)?.at(-1);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** A message whose only field is an empty message: how a dish is asked for something. */
export function encodeEmptyField(number: number): Uint8Array {
  return encodeField(number, []);
}

/** A message whose only field is a message of these bytes. */
export function encodeField(number: number, bytes: readonly number[]): Uint8Array {
  return Uint8Array.from([...encodeVarint(number * 8 + wire.bytes), ...encodeVarint(bytes.length), ...bytes]);
}

function encodeVarint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value % 0x80) | 0x80, ...encodeVarint(Math.floor(value / 0x80))];
}
