/** Writes single fields of a payload, and refuses values that would change on the way. */
import type { Field } from './definitions.ts';

interface Given {
  readonly message: string;
  readonly value: unknown;
}

/** Throws RangeError for a value that the field cannot hold as it is. */
export function writeField(view: DataView, field: Field, given: Given): void {
  const { value } = given;
  const wrong = (what: string): RangeError =>
    new RangeError(`${given.message}.${field.name}: ${what} does not fit ${typeText(field)}`);
  if (field.type === 'char') {
    writeText(view, field, value, wrong);
  } else if (typeof value === 'string' && field.type === 'uint8_t' && field.length > 0) {
    writeText(view, field, value, wrong);
  } else if (field.length > 0) {
    if (!Array.isArray(value) || value.length > field.length) throw wrong(`an array of other length`);
    const { size } = writerOf(field, wrong);
    value.forEach((each: unknown, index) =>
      writeNumber(view, { ...field, at: field.at + index * size }, each, wrong),
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

interface Writer {
  readonly size: number;
  readonly lo: number;
  readonly hi: number;
  readonly write: (view: DataView, at: number, value: number) => void;
}

const float32_max = 3.402_823_466_385_288_6e38;
const writers: Readonly<Record<string, Writer>> = {
  uint8_t: { size: 1, lo: 0, hi: 2 ** 8 - 1, write: (view, at, value) => view.setUint8(at, value) },
  int8_t: { size: 1, lo: -(2 ** 7), hi: 2 ** 7 - 1, write: (view, at, value) => view.setInt8(at, value) },
  uint16_t: { size: 2, lo: 0, hi: 2 ** 16 - 1, write: (view, at, value) => view.setUint16(at, value, true) },
  int16_t: {
    size: 2,
    lo: -(2 ** 15),
    hi: 2 ** 15 - 1,
    write: (view, at, value) => view.setInt16(at, value, true),
  },
  uint32_t: { size: 4, lo: 0, hi: 2 ** 32 - 1, write: (view, at, value) => view.setUint32(at, value, true) },
  int32_t: {
    size: 4,
    lo: -(2 ** 31),
    hi: 2 ** 31 - 1,
    write: (view, at, value) => view.setInt32(at, value, true),
  },
  uint64_t: {
    size: 8,
    lo: 0,
    hi: Number.MAX_SAFE_INTEGER,
    write: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  },
  int64_t: {
    size: 8,
    lo: Number.MIN_SAFE_INTEGER,
    hi: Number.MAX_SAFE_INTEGER,
    write: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  },
  float: {
    size: 4,
    lo: -float32_max,
    hi: float32_max,
    write: (view, at, value) => view.setFloat32(at, value, true),
  },
};

function writerOf(field: Field, wrong: Wrong): Writer {
  const writer = writers[field.type];
  if (writer === undefined) throw wrong('every value');
  return writer;
}

function writeNumber(view: DataView, field: Field, value: unknown, wrong: Wrong): void {
  const { lo, hi, write } = writerOf(field, wrong);
  if (field.type === 'uint64_t' && typeof value === 'string' && /^[0-9a-f]{16}$/.test(value)) {
    view.setBigUint64(field.at, BigInt(`0x${value}`), true);
    return;
  }
  if (typeof value !== 'number') throw wrong(String(value));
  const isFloat = field.type === 'float';
  const fits = isFloat ? Number.isNaN(value) || (value >= lo && value <= hi) : Number.isInteger(value);
  if (!fits || value < lo || value > hi) throw wrong(String(value));
  write(view, field.at, value);
}
