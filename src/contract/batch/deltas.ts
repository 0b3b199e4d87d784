/**
 * Writes integers as differences, digit by digit into bytes: a string that grows by one number at a time is garbage for each
 * of them, and the small heap of the buffer's thread would have to collect it.
 */

const [minus, comma, zero, open, close] = [45, 44, 48, 91, 93];
/** The longest text of a number, and a comma. */
const chars_max = 26;
const kept_bytes = 16 * 1024;
const kept = Buffer.allocUnsafeSlow(kept_bytes);

/** JSON text of the integers as a first value and differences. */
export function encodeDeltas(integers: readonly number[]): string {
  const wanted_bytes = integers.length * chars_max + 2;
  const bytes = wanted_bytes > kept_bytes ? Buffer.allocUnsafe(wanted_bytes) : kept;
  let end = put(bytes, 0, open);
  let before = 0;
  for (const integer of integers) {
    if (end > 1) end = put(bytes, end, comma);
    end = writeInteger(bytes, end, integer - before);
    before = integer;
  }
  end = put(bytes, end, close);
  return bytes.toString('latin1', 0, end);
}

/** Returns where it ends. */
function writeInteger(bytes: Buffer, at: number, integer: number): number {
  if (!Number.isSafeInteger(integer)) return at + bytes.write(String(integer), at, 'latin1');
  const begin = integer < 0 ? put(bytes, at, minus) : at;
  let rest = Math.abs(integer);
  let end = begin + 1;
  for (let power = 10; rest >= power; power *= 10) end += 1;
  for (let digit = end - 1; digit >= begin; digit -= 1) {
    const tens = Math.floor(rest / 10);
    bytes[digit] = zero + rest - tens * 10;
    rest = tens;
  }
  return end;
}

function put(bytes: Buffer, at: number, code: number): number {
  bytes[at] = code;
  return at + 1;
}
