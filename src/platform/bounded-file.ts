/** Reads files that others write or name, up to a limit: a wrong path may lead to a disk image, a pipe or a device without an end. */
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { FileRefused } from './errors.ts';
import { gather } from './gathered-bytes.ts';
import { texts } from './texts.ts';

/** More than a value or a page of lines takes. */
export const small_bytes_max = 64 * 1024;
/** Of the tables of the system: users, groups, routes, neighbours. */
export const table_bytes_max = 8 * 1024 * 1024;

/** Without O_NONBLOCK a named pipe would block a thread until something writes to it. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;
/** Read at once; small files take one read and no memory to speak of. */
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
  if (!(await handle.stat()).isFile()) throw new FileRefused(texts.no_file);
  const bytes = new Growing(bytes_max);
  // The size that the system names may be wrong: files of the kernel name 0, and others grow while they are read.
  for (;;) {
    const room = bytes.room();
    const { bytesRead } = await handle.read(room, 0, room.length, null);
    if (bytes.isEnd(bytesRead)) return bytes.all();
  }
}

function readBytesUpToSync(file: string, bytes_max: number): Buffer {
  const fd = openSync(file, flags);
  try {
    if (!fstatSync(fd).isFile()) throw new FileRefused(texts.no_file);
    const bytes = new Growing(bytes_max);
    while (!bytes.isEnd(readSync(fd, bytes.room(), 0, bytes.room().length, null)));
    return bytes.all();
  } finally {
    closeSync(fd);
  }
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

/** What was read so far, with one byte more than the limit to notice that there is more. */
class Growing {
  readonly #bytes_max: number;
  #held: Buffer;
  #length = 0;

  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
    this.#held = Buffer.allocUnsafe(Math.min(first_bytes, bytes_max + 1));
  }

  /** Where the next bytes belong. */
  room(): Buffer {
    if (this.#length === this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * this.#held.length, this.#bytes_max + 1));
      this.#held.copy(larger);
      this.#held = larger;
    }
    return this.#held.subarray(this.#length);
  }

  /** Takes the bytes that were read into `room`; true when there were none. */
  isEnd(bytes: number): boolean {
    this.#length += bytes;
    if (this.#length > this.#bytes_max) throw new FileRefused(texts.larger_than(this.#bytes_max));
    return bytes === 0;
  }

  all(): Buffer {
    return this.#held.subarray(0, this.#length);
  }
}
