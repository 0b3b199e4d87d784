/** What a dish reports, with the numbers of its fields (SpaceX.API.Device). Pure: bytes in, facts out; undefined is not known. */
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';

/** Fields of one message, by number, in the order they came. A field of another type than asked for counts as absent. */
type Fields = ReadonlyMap<number, readonly Field[]>;

type Field =
  | { readonly type: 'varint'; readonly value: number }
  | { readonly type: 'fixed32' | 'fixed64' | 'bytes'; readonly bytes: Uint8Array };

/** Far above what a dish sends, far below what would hurt: 16,384 in each message of an answer took 0.1 s. */
export const fields_max = 4_096;
const varint_bytes_max = 10;
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
const utf8 = new TextDecoder('utf-8');

/**
 * Splits one message of Protocol Buffers into its fields; nested ones stay bytes until `message` is asked for them. Whatever breaks the
 * encoding is a `DeviceUnreachable`, since nothing after it can be trusted. https://protobuf.dev/programming-guides/encoding/
 */
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
function bool(fields: Fields, number: number): boolean {
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
function message(fields: Fields, number: number): Fields | undefined {
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
function encodeEmptyField(number: number): Uint8Array {
  return encodeField(number, []);
}

/** A message whose only field is a message of these bytes. */
export function encodeField(number: number, bytes: readonly number[]): Uint8Array {
  return Uint8Array.from([...encodeVarint(number * 8 + wire.bytes), ...encodeVarint(bytes.length), ...bytes]);
}

function encodeVarint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value % 0x80) | 0x80, ...encodeVarint(Math.floor(value / 0x80))];
}

/** The one method that every question goes to. */
export const dish_method = '/SpaceX.API.Device.Device/Handle';

export const requests = {
  status: encodeEmptyField(1004),
  history: encodeEmptyField(1007),
  location: encodeEmptyField(1017),
  reboot: encodeEmptyField(1001),
  stow: encodeEmptyField(2002),
  // The field `unstow` of the request, true.
  unstow: encodeField(2002, [0x08, 0x01]),
} as const;

export interface DishStatus {
  readonly id: string | undefined;
  readonly hardware: string | undefined;
  readonly firmware: string | undefined;
  readonly uptime_s: number | undefined;
  /** `DishOutage.Cause`; undefined: there is no outage. */
  readonly outage: number | undefined;
  /** `UtDisablementCode`; 0 is not known, 1 is in order. */
  readonly disablement: number;
  /** Numbers of the fields of `DishAlerts` that are set. */
  readonly alerts: readonly number[];
  readonly obstructed: boolean;
  /** 0..1. */
  readonly obstructed_fraction: number | undefined;
  readonly downlink_bps: number | undefined;
  readonly uplink_bps: number | undefined;
  /** The satellite receiver of the dish has a fix; undefined when the dish does not report its receiver. */
  readonly gps_valid: boolean | undefined;
}

/** Undefined when the answer is no status of a dish. */
export function parseStatus(bytes: Uint8Array): DishStatus | undefined {
  const status = message(decode(bytes), 2004);
  if (!status) return undefined;
  const info = message(status, 1) ?? nothing;
  const outage = message(status, 1014);
  const obstruction = message(status, 1004) ?? nothing;
  const gps = message(status, 1015);
  const alerts = message(status, 1005) ?? nothing;
  return {
    id: text(info, 1),
    hardware: text(info, 2),
    firmware: text(info, 3),
    uptime_s: uint(message(status, 2) ?? nothing, 1),
    outage: outage && (uint(outage, 1) ?? 0),
    disablement: uint(status, 1024) ?? 0,
    alerts: [...alerts.keys()].filter((number) => bool(alerts, number)),
    obstructed: bool(obstruction, 5),
    obstructed_fraction: real(obstruction, 1),
    downlink_bps: real(status, 1007),
    uplink_bps: real(status, 1008),
    gps_valid: gps && bool(gps, 1),
  };
}

/** Rings with one sample for each second; the newest stands at (`current` - 1) modulo the length. */
export interface DishHistory {
  /** Seconds since the dish booted: a smaller value than before means a reboot. */
  readonly current: number;
  /** 0..1. */
  readonly drop_rate: readonly number[];
  readonly latency_ms: readonly number[];
}

/** Undefined when the answer is no history of a dish. */
export function parseHistory(bytes: Uint8Array): DishHistory | undefined {
  const history = message(decode(bytes), 2006);
  if (!history) return undefined;
  return {
    current: uint(history, 1) ?? 0,
    drop_rate: floats(history, 1001),
    latency_ms: floats(history, 1002),
  };
}

export interface DishLocation {
  readonly latitude: number;
  readonly longitude: number;
  /** `PositionSource`. */
  readonly source: number;
}

/** Undefined when the dish does not know where it is. */
export function parseLocation(bytes: Uint8Array): DishLocation | undefined {
  const location = message(decode(bytes), 1017);
  const lla = location && message(location, 1);
  if (!location || !lla) return undefined;
  // proto3 leaves out what is 0; both at once is how "unknown" looks.
  const latitude = real(lla, 1) ?? 0;
  const longitude = real(lla, 2) ?? 0;
  if ((latitude === 0 && longitude === 0) || Math.abs(latitude) > 90 || Math.abs(longitude) > 180)
    return undefined;
  return { latitude, longitude, source: uint(location, 3) ?? 0 };
}

/** `SpaceX.API.Status.Status`, the second way of a dish to refuse: inside an answer that gRPC calls a success. */
export function parseRefusal(
  bytes: Uint8Array,
): { readonly status: number; readonly reason: string } | undefined {
  const refusal = message(decode(bytes), 2);
  const status = (refusal && uint(refusal, 1)) ?? 0;
  if (!refusal || status === 0) return undefined;
  return { status, reason: text(refusal, 2, 200) ?? `status ${status}` };
}

const nothing: Fields = new Map();
