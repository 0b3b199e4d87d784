/** Reads header and metadata of a PMTiles archive (specification version 3, sections 3 and 5). */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib';
import { z } from 'zod';
import { answer_limits, readJson } from '../../contract/bounded-json.ts';
import { messageOf } from '../../platform/errors.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { texts } from '../texts.ts';

export const header_bytes = 127;
const magic = 'PMTiles';
const version = 3;
const degrees_e7 = 10_000_000;
/** Metadata of an archive of the whole planet has some 10 kB. */
const metadata_bytes_max = 1024 * 1024;
const unpacked_bytes_max = answer_limits.bytes_max;
const text_chars_max = 2_000;
const layers_max = 256;

export const tileTypes = ['unknown', 'mvt', 'png', 'jpeg', 'webp', 'avif', 'mlt'] as const;
export const compressions = ['unknown', 'none', 'gzip', 'brotli', 'zstd'] as const;

export interface PmtilesHeader {
  readonly tile_type: (typeof tileTypes)[number];
  readonly tile_compression: (typeof compressions)[number];
  readonly min_zoom: number;
  readonly max_zoom: number;
  /** West, south, east, north in degrees. */
  readonly bounds: readonly [number, number, number, number];
  readonly center: { readonly lat: number; readonly lon: number; readonly zoom: number };
  /** Offset of the metadata, and its compression. */
  readonly metadata: { readonly offset: number; readonly bytes: number };
  readonly compression: (typeof compressions)[number];
}

const text = z.string().transform((value) => cleanText(value.slice(0, text_chars_max)));
const optionalText = text.optional().catch(undefined);
const metadataShape = z.object({
  name: optionalText,
  description: optionalText,
  attribution: optionalText,
  vector_layers: z
    .array(z.object({ id: text }))
    .transform((layers) => layers.slice(0, layers_max).map(({ id }) => id))
    .optional()
    .catch(undefined),
});
/** `vector_layers`: their ids. */
export type PmtilesMetadata = z.output<typeof metadataShape>;

/** Returns the header; throws an `Error` that names what is wrong with the file. */
export function readHeader(bytes: Buffer): PmtilesHeader {
  if (bytes.length < header_bytes || bytes.toString('latin1', 0, magic.length) !== magic) {
    throw new Error(texts.map_no_archive);
  }
  const found = bytes.readUInt8(7);
  if (found !== version) {
    throw new Error(texts.map_version(found, version));
  }
  const degrees = (at: number): number => bytes.readInt32LE(at) / degrees_e7;
  const header: PmtilesHeader = {
    metadata: { offset: bigAt(bytes, 24), bytes: bigAt(bytes, 32) },
    compression: compressions[bytes.readUInt8(97)] ?? 'unknown',
    tile_compression: compressions[bytes.readUInt8(98)] ?? 'unknown',
    tile_type: tileTypes[bytes.readUInt8(99)] ?? 'unknown',
    min_zoom: bytes.readUInt8(100),
    max_zoom: bytes.readUInt8(101),
    bounds: [degrees(102), degrees(106), degrees(110), degrees(114)],
    center: { zoom: bytes.readUInt8(118), lon: degrees(119), lat: degrees(123) },
  };
  demandOnEarth(header.bounds);
  return header;
}

function demandOnEarth([west, south, east, north]: PmtilesHeader['bounds']): void {
  if (west >= -180 && east <= 180 && south >= -90 && north <= 90 && west <= east && south <= north) return;
  throw new Error(texts.map_bounds);
}

/** Returns the metadata of the archive; throws an `Error` when it cannot be read. `read`: bytes of the file. */
export async function readMetadata(
  { metadata, compression }: Pick<PmtilesHeader, 'metadata' | 'compression'>,
  read: (offset: number, length: number) => Promise<Buffer>,
): Promise<PmtilesMetadata> {
  if (metadata.bytes > metadata_bytes_max) {
    throw new Error(texts.map_metadata_large(metadata.bytes, metadata_bytes_max));
  }
  if (metadata.bytes === 0) return {};
  const packed = await read(metadata.offset, metadata.bytes);
  try {
    return metadataShape.parse(readJson(await unpack(packed, compression), answer_limits));
  } catch (error) {
    throw new Error(texts.map_metadata_damaged(messageOf(error)), { cause: error });
  }
}

async function unpack(bytes: Buffer, compression: PmtilesHeader['compression']): Promise<Buffer> {
  const options = { maxOutputLength: unpacked_bytes_max };
  if (compression === 'gzip') return promisify(gunzip)(bytes, options);
  if (compression === 'brotli') return promisify(brotliDecompress)(bytes, options);
  if (compression === 'zstd') return promisify(zstdDecompress)(bytes, options);
  return bytes;
}

function bigAt(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}
