/** Reads files that others write or name, up to a limit: a wrong path may lead to a disk image, a pipe or a device without an end. */
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { FileRefused } from './errors.ts';
import { gather, GatheredBytes } from './gathered-bytes.ts';
import { texts } from './texts.ts';

/** More than a value or a page of lines takes. */
export const small_bytes_max = 64 * 1024;
/** Of the tables of the system: users, groups, routes, neighbours. */
export const table_bytes_max = 8 * 1024 * 1024;

/** Without O_NONBLOCK a named pipe would block a thread until something writes to it. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;
/** Read at once of files whose size is small, or not known. */
const first_bytes = 4 * 1024;

/** The bytes of a regular file. Rejects with `FileRefused` when it is none or has more than `bytes_max`, else as the system does. */
export async function readBytesUpTo(file: string, bytes_max: number): Promise<Buffer> {
  // One handle for the check and for the content: the file cannot be exchanged in between.
  await using handle = await open(file, flags);
  return await readHandle(handle, bytes_max);
}

type Readable = Pick<Awaited<ReturnType<typeof open>>, 'stat' | 'read'>;

/** As `readBytesUpTo`, of a file that is open. */
export async function readHandle(handle: Readable, bytes_max: number): Promise<Buffer> {
  const stats = await handle.stat();
  if (!stats.isFile()) throw new FileRefused(texts.no_file);
  const bytes = new GatheredBytes(bytes_max);
  const room = roomFor(stats, bytes_max);
  // The size that the system names may be wrong: files of the kernel name 0, and others grow while they are read.
  for (;;) {
    const { bytesRead } = await handle.read(room, 0, room.length, null);
    if (isEnd(bytes, room.subarray(0, bytesRead), bytes_max)) return bytes.all();
  }
}

function readBytesUpToSync(file: string, bytes_max: number): Buffer {
  const fd = openSync(file, flags);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new FileRefused(texts.no_file);
    const bytes = new GatheredBytes(bytes_max);
    const room = roomFor(stats, bytes_max);
    while (!isEnd(bytes, room.subarray(0, readSync(fd, room)), bytes_max));
    return bytes.all();
  } finally {
    closeSync(fd);
  }
}

/** Takes most files at once, and small ones without memory to speak of. */
function roomFor({ size }: { readonly size: number }, bytes_max: number): Buffer {
  return Buffer.allocUnsafe(Math.min(Math.max(size, first_bytes), bytes_max + 1));
}

/** Adds what was read; true when that was nothing. */
function isEnd(bytes: GatheredBytes, read: Buffer, bytes_max: number): boolean {
  if (!bytes.add(read)) throw new FileRefused(texts.larger_than(bytes_max));
  return read.length === 0;
}

/** The text of `readBytesUpTo`, as UTF-8. */
export async function readTextUpTo(file: string, bytes_max: number): Promise<string> {
  return (await readBytesUpTo(file, bytes_max)).toString('utf8');
}

/** As `readTextUpTo`, without the mark that editors of Windows begin a file with, and from a pipe too: for a path that a person typed, such as `<(pass show broker)`. */
export async function readTypedUpTo(path: string, bytes_max: number): Promise<string> {
  const bytes = await gather(createReadStream(path), bytes_max);
  if (!bytes) throw new FileRefused(texts.larger_than(bytes_max));
  return new TextDecoder().decode(bytes);
}

/** As `readTextUpTo`, and blocks: for small files at a start, and for files that the kernel answers from memory. */
export function readTextUpToSync(file: string, bytes_max: number): string {
  return readBytesUpToSync(file, bytes_max).toString('utf8');
}
