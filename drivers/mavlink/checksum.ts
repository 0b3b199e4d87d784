/** The checksum of MAVLink: CRC-16/MCRF4XX over all but the start byte, then over the CRC_EXTRA of the message. */

const polynomial = 0x8408;
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  return crc;
});

/** Of `bytes[from]` up to, not including, `bytes[to]`. */
export function checksum(bytes: Uint8Array, from: number, to: number, crc_extra: number): number {
  let crc = 0xffff;
  for (let at = from; at < to; at++) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return (crc >>> 8) ^ (table[(crc ^ crc_extra) & 0xff] ?? 0);
}
