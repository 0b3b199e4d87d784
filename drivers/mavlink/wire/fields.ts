/** Reads single fields of a payload. MAVLink is little-endian throughout. */

type Reader = (view: DataView, at: number) => number;

export const u8: Reader = (view, at) => view.getUint8(at);
export const i8: Reader = (view, at) => view.getInt8(at);
export const u16: Reader = (view, at) => view.getUint16(at, true);
export const i16: Reader = (view, at) => view.getInt16(at, true);
export const u32: Reader = (view, at) => view.getUint32(at, true);
export const i32: Reader = (view, at) => view.getInt32(at, true);
export const f32: Reader = (view, at) => view.getFloat32(at, true);

/** Exact up to 2^53, which is 285 years in microseconds; what must be exact beyond is read with `hex`. */
export const u64: Reader = (view, at) => view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);

export function bytes(view: DataView, at: number, length: number): readonly number[] {
  const values: number[] = [];
  for (let index = 0; index < length; index++) values.push(view.getUint8(at + index));
  return values;
}

export function u16s(view: DataView, at: number, length: number): readonly number[] {
  const values: number[] = [];
  for (let index = 0; index < length; index++) values.push(u16(view, at + 2 * index));
  return values;
}

export function f32s(view: DataView, at: number, length: number): readonly number[] {
  const values: number[] = [];
  for (let index = 0; index < length; index++) values.push(f32(view, at + 4 * index));
  return values;
}

/** The digits of an unsigned integer of `length` bytes, highest first: an identity that no rounding may touch. */
export function hex(view: DataView, at: number, length: number): string {
  return bytes(view, at, length)
    .toReversed()
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}

/** A text ends at its first NUL or with its field; spaces around it mean nothing. Bytes that are no UTF-8 become U+FFFD. */
export function text(view: DataView, at: number, length: number): string {
  return chunkText(view, at, length).trim();
}

/** The same, with its spaces: those at the ends of a chunk stand between two words of the whole. */
export function chunkText(view: DataView, at: number, length: number): string {
  let end = at;
  while (end < at + length && view.getUint8(end) !== 0) end++;
  return utf8.decode(new Uint8Array(view.buffer, view.byteOffset + at, end - at));
}
const utf8 = new TextDecoder();
