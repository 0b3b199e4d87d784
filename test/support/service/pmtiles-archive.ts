/** A small PMTiles archive (specification version 3): one vector tile at zoom 0, and metadata. */
import { gzipSync } from 'node:zlib';

interface ArchiveOptions {
  /** As JSON text, or what becomes one. */
  readonly metadata?: object | string;
  readonly tile?: Buffer;
  /** Fills the end of the file, as the tiles of a large area do. */
  readonly filler_bytes?: number;
}

const header_bytes = 127;
const gzip = 2;
const mvt = 1;

/** Returns the bytes of the archive. Its bounds are 8, 47, 9, 48; its zooms 0 to 14. */
export function pmtilesArchive({
  metadata = { name: 'Area', attribution: '© OpenStreetMap', vector_layers: [{ id: 'water' }] },
  tile = Buffer.from('a tile'),
  filler_bytes = 0,
}: ArchiveOptions = {}): Buffer<ArrayBuffer> {
  const packed = gzipSync(tile);
  // One entry: tile id 0, run of 1, its length, its offset plus 1.
  const root = gzipSync(Buffer.from([1, 0, 1, ...varint(packed.length), 1]));
  const texts = gzipSync(typeof metadata === 'string' ? metadata : JSON.stringify(metadata));
  const header = Buffer.alloc(header_bytes);
  header.write('PMTiles', 'latin1');
  header.writeUInt8(3, 7);
  const lengths = [root.length, texts.length, 0, packed.length + filler_bytes];
  let offset = header_bytes;
  for (const [n, length] of lengths.entries()) {
    header.writeBigUInt64LE(BigInt(offset), 8 + n * 16);
    header.writeBigUInt64LE(BigInt(length), 16 + n * 16);
    offset += length;
  }
  for (const at of [72, 80, 88]) header.writeBigUInt64LE(1n, at);
  for (const [n, value] of [1, gzip, gzip, mvt, 0, 14].entries()) header.writeUInt8(value, 96 + n);
  for (const [n, degrees] of [8, 47, 9, 48].entries()) header.writeInt32LE(degrees * 1e7, 102 + n * 4);
  header.writeUInt8(10, 118);
  header.writeInt32LE(8.5e7, 119);
  header.writeInt32LE(47.5e7, 123);
  return Buffer.concat([header, root, texts, packed, Buffer.alloc(filler_bytes, 7)]);
}

function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}
