/** The PMTiles archive of the operator. It may be replaced while the service runs: by a rename, so that no reader sees half of it. */
import { constants, type BigIntStats } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { systemReason } from '../../platform/errors.ts';
import {
  header_bytes,
  type PmtilesHeader,
  type PmtilesMetadata,
  readHeader,
  readMetadata,
} from './pmtiles.ts';
import { texts } from '../texts.ts';

/** One read of a longer stream. */
const portion_bytes = 256 * 1024;

export interface MapVersion {
  /** Strong ETag: another one as soon as the file is another one. */
  readonly tag: string;
  readonly bytes: number;
}

export type MapInfo = Omit<PmtilesHeader, 'metadata' | 'compression'> & PmtilesMetadata & MapVersion;

export class MapFile {
  readonly #file: string;
  #read: { readonly tag: string; readonly info: MapInfo } | undefined;

  /** `file`: absolute path; it may be missing. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Returns what the file is now; throws an `Error` with the reason when it cannot be read. */
  async version(): Promise<MapVersion> {
    try {
      return versionOf(await stat(this.#file, { bigint: true }));
    } catch (error) {
      throw new Error(systemReason(error), { cause: error });
    }
  }

  /** Returns header and metadata; throws an `Error` with the reason when it is not a readable archive. */
  async info(): Promise<MapInfo> {
    const version = await this.version();
    if (this.#read?.tag === version.tag) return this.#read.info;
    const { metadata, compression, ...header } = readHeader(
      await this.#bytes(version, 0, Math.min(header_bytes, version.bytes)),
    );
    const texts = await readMetadata({ metadata, compression }, async (offset, length) =>
      this.#bytes(version, offset, length),
    );
    const info = { ...header, ...texts, ...version };
    this.#read = { tag: version.tag, info };
    return info;
  }

  /** Streams bytes of this version. It breaks off with an `Error` when the file has become another one. */
  stream(version: MapVersion, first: number, length: number): ReadableStream<Uint8Array<ArrayBuffer>> {
    let handle: FileHandle | undefined;
    let at = first;
    const end = first + length;
    const close = async (): Promise<void> => {
      await handle?.close();
      handle = undefined;
    };
    return new ReadableStream(
      {
        pull: async (controller) => {
          try {
            handle ??= await this.#open(version);
            const bytes = await readFully(handle, at, Math.min(portion_bytes, end - at));
            at += bytes.length;
            controller.enqueue(bytes);
            if (at < end) return;
            await close();
            controller.close();
          } catch (error) {
            await close();
            controller.error(error);
          }
        },
        cancel: close,
      },
      { highWaterMark: 1 },
    );
  }

  async #bytes(version: MapVersion, first: number, length: number): Promise<Buffer> {
    if (first + length > version.bytes) throw new Error(texts.map_cut);
    const handle = await this.#open(version);
    try {
      return await readFully(handle, first, length);
    } finally {
      await handle.close();
    }
  }

  async #open({ tag }: MapVersion): Promise<FileHandle> {
    // A pipe without a writer would wait for one.
    const handle = await open(this.#file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (versionOf(await handle.stat({ bigint: true })).tag === tag) return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    throw new Error(texts.map_replaced);
  }
}

function versionOf(stats: BigIntStats): MapVersion {
  if (!stats.isFile()) throw new Error(texts.map_no_file);
  const { dev, ino, size, mtimeNs } = stats;
  return {
    tag: `"${[dev, ino, size, mtimeNs].map((each) => each.toString(36)).join('-')}"`,
    bytes: Number(size),
  };
}

async function readFully(handle: FileHandle, first: number, length: number): Promise<Buffer<ArrayBuffer>> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, first + filled);
    if (bytesRead === 0) throw new Error(texts.map_shorter);
    filled += bytesRead;
  }
  return buffer;
}
