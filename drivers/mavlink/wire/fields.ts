/** How the fields of a payload are read and written. MAVLink is little-endian throughout. */

export interface Field {
  /** Name as in the XML. */
  readonly name: string;
  /** Of the field, or of each element of an array: `uint8_t`, `float`, `char`, ... */
  readonly type: string;
  readonly at: number;
  /** Number of elements; 0 for a scalar. */
  readonly length: number;
}

interface NumberType {
  readonly size: number;
  readonly lo: number;
  readonly hi: number;
  readonly read: (view: DataView, at: number) => number;
  readonly write: (view: DataView, at: number, value: number) => void;
}

const float32_max = 3.402_823_466_385_288_6e38;
const numberTypes: Readonly<Record<string, NumberType>> = {
  uint8_t: {
    size: 1,
    lo: 0,
    hi: 2 ** 8 - 1,
    read: (view, at) => view.getUint8(at),
    write: (view, at, value) => view.setUint8(at, value),
  },
  int8_t: {
    size: 1,
    lo: -(2 ** 7),
    hi: 2 ** 7 - 1,
    read: (view, at) => view.getInt8(at),
    write: (view, at, value) => view.setInt8(at, value),
  },
  uint16_t: {
    size: 2,
    lo: 0,
    hi: 2 ** 16 - 1,
    read: (view, at) => view.getUint16(at, true),
    write: (view, at, value) => view.setUint16(at, value, true),
  },
  int16_t: {
    size: 2,
    lo: -(2 ** 15),
    hi: 2 ** 15 - 1,
    read: (view, at) => view.getInt16(at, true),
    write: (view, at, value) => view.setInt16(at, value, true),
  },
  uint32_t: {
    size: 4,
    lo: 0,
    hi: 2 ** 32 - 1,
    read: (view, at) => view.getUint32(at, true),
    write: (view, at, value) => view.setUint32(at, value, true),
  },
  int32_t: {
    size: 4,
    lo: -(2 ** 31),
    hi: 2 ** 31 - 1,
    read: (view, at) => view.getInt32(at, true),
    write: (view, at, value) => view.setInt32(at, value, true),
  },
  // Exact up to 2^53, which is 285 years in microseconds; what must be exact beyond is `hex64`.
  uint64_t: {
    size: 8,
    lo: 0,
    hi: Number.MAX_SAFE_INTEGER,
    read: (view, at) => view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true),
    write: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  },
  float: {
    size: 4,
    lo: -float32_max,
    hi: float32_max,
    read: (view, at) => view.getFloat32(at, true),
    write: (view, at, value) => view.setFloat32(at, value, true),
  },
};

/** Bytes of one value. */
export function sizeOf(type: string): number {
  if (type === 'hex64') return 8;
  return type === 'char' || type === 'chunk' ? 1 : numberTypeOf(type).size;
}

export function readerOf({ type, at, length }: Field): (view: DataView) => unknown {
  if (type === 'char') return (view) => chunkText(view, at, length).trim();
  if (type === 'chunk') return (view) => chunkText(view, at, length);
  if (type === 'hex64') return (view) => view.getBigUint64(at, true).toString(16).padStart(hex64_digits, '0');
  const { size, read } = numberTypeOf(type);
  if (length === 0) return (view) => read(view, at);
  return (view) => {
    const values: number[] = [];
    for (let index = 0; index < length; index++) values.push(read(view, at + index * size));
    return values;
  };
}

const hex64_digits = 16;
const utf8 = new TextDecoder();

/** A text ends at its first NUL or with its field. Bytes that are no UTF-8 become U+FFFD. */
function chunkText(view: DataView, at: number, length: number): string {
  let end = at;
  while (end < at + length && view.getUint8(end) !== 0) end++;
  return utf8.decode(new Uint8Array(view.buffer, view.byteOffset + at, end - at));
}

/** Writes a value of the message. Throws RangeError for one that the field cannot hold as it is. */
export function writeField(view: DataView, field: Field, value: unknown, message: string): void {
  const wrong = (what: string): RangeError =>
    new RangeError(`${message}.${field.name}: ${what} does not fit ${typeText(field)}`);
  const { type, at, length } = field;
  if (type === 'char' || type === 'chunk') {
    writeText(view, field, value, wrong);
  } else if (type === 'hex64') {
    if (typeof value !== 'string' || !/^[0-9a-f]{16}$/.test(value)) throw wrong(String(value));
    view.setBigUint64(at, BigInt(`0x${value}`), true);
  } else if (length > 0) {
    if (!Array.isArray(value) || value.length > length) throw wrong(`an array of other length`);
    const { size } = numberTypeOf(type);
    value.forEach((each: unknown, index) =>
      writeNumber(view, { ...field, at: at + index * size }, each, wrong),
    );
  } else {
    writeNumber(view, field, value, wrong);
  }
}

type Wrong = (what: string) => RangeError;

function typeText({ type, length }: Field): string {
  return length > 0 ? `${type}[${length}]` : type;
}

function writeText(view: DataView, field: Field, value: unknown, wrong: Wrong): void {
  if (typeof value !== 'string') throw wrong(String(value));
  const bytes = new TextEncoder().encode(value);
  if (bytes.length > field.length) throw wrong(`a text of ${bytes.length} bytes`);
  for (const [index, byte] of bytes.entries()) view.setUint8(field.at + index, byte);
}

function writeNumber(view: DataView, { type, at }: Field, value: unknown, wrong: Wrong): void {
  const { lo, hi, write } = numberTypeOf(type);
  if (typeof value !== 'number') throw wrong(String(value));
  const isOfType = type === 'float' || Number.isInteger(value);
  const isNotGiven = type === 'float' && Number.isNaN(value);
  if (!isNotGiven && !(isOfType && value >= lo && value <= hi)) throw wrong(String(value));
  write(view, at, value);
}

function numberTypeOf(type: string): NumberType {
  const found = numberTypes[type];
  if (found === undefined) throw new RangeError(`no field can be of the type ${type}`);
  return found;
}
