/** The checksum of MAVLink: CRC-16/MCRF4XX over all but the start byte, then over the CRC_EXTRA of the message. */

const polynomial = 0x8408;
const stride = 8;
const half = stride / 2;

/**
 * `tables[256 * n + byte]` is what a byte does to the checksum when n more bytes follow it. With one table for each
 * distance, eight bytes are looked up side by side instead of one after the other.
 */
const tables = new Uint16Array(256 * stride);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  tables[byte] = crc;
}
for (let at = 256; at < tables.length; at++) tables[at] = shifted(entry(at - 256));

/** Of `bytes[from]` up to, not including, `bytes[to]`. */
export function checksum(bytes: Uint8Array, from: number, to: number, crc_extra: number): number {
  let crc = 0xffff;
  let at = from;
  for (; at + stride <= to; at += stride) {
    crc ^= byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8);
    crc =
      entry(1_792 + (crc & 0xff)) ^
      entry(1_536 + (crc >>> 8)) ^
      entry(1_280 + byteAt(bytes, at + 2)) ^
      entry(1_024 + byteAt(bytes, at + 3)) ^
      entry(768 + byteAt(bytes, at + 4)) ^
      entry(512 + byteAt(bytes, at + 5)) ^
      entry(256 + byteAt(bytes, at + 6)) ^
      entry(byteAt(bytes, at + 7));
  }
  if (at + half <= to) {
    crc ^= byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8);
    crc =
      entry(768 + (crc & 0xff)) ^
      entry(512 + (crc >>> 8)) ^
      entry(256 + byteAt(bytes, at + 2)) ^
      entry(byteAt(bytes, at + 3));
    at += half;
  }
  for (; at < to; at++) crc = shifted(crc ^ byteAt(bytes, at));
  return shifted(crc ^ crc_extra);
}

/** The checksum one byte later, that byte already in it. */
function shifted(crc: number): number {
  return (crc >>> 8) ^ entry(crc & 0xff);
}

function entry(index: number): number {
  return tables[index] ?? 0;
}

/** The caller stays within the bounds; the zero is for the compiler. */
function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}
