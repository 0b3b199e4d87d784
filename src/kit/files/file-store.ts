/**
 * Files that wait for the cloud: their contents in a folder, and a journal of what was accepted and how each file ended. A line
 * of the journal is on the disk before anything that it says is reported, and before the content it names is deleted.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants, createReadStream, existsSync } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { fileReport } from '../../contract/files.ts';
import { CommandRefused, messageOf, StorageUnavailable, systemReason } from '../../platform/errors.ts';
import { readTextUpTo } from '../../platform/bounded-file.ts';
import { replaceFile } from '../../platform/replace-file.ts';
import { every } from '../../platform/time.ts';
import type { NewFile } from '../../toolkit/driver/driver.ts';
import { texts } from './texts.ts';

/** Files that are kept, whatever their size. */
export const files_max = 5_000;
/** The journal is written anew at the start, and when it has become so long. */
const journal_lines_max = 50_000;
/** So many lines have less. */
const journal_bytes_max = 64 * 1024 * 1024;
const expire_every_ms = 60_000;

const fileEntry = fileReport.omit({ thumbnail: true, state: true, reason: true, at: true }).extend({
  at_ms: z.number(),
  /** When it was accepted. */
  added_ms: z.number(),
});
export type FileEntry = z.output<typeof fileEntry>;

export interface KeptFile extends FileEntry {
  /** Also over links on which files are sent only on order. */
  ordered: boolean;
  /** The message that announces it is on disk. */
  announced: boolean;
}

/** Why a file was given up: what `kit-connector status` counts. */
const drop_reasons = ['evicted', 'expired', 'lost', 'unwanted'] as const;
export type FileDrop = (typeof drop_reasons)[number];

const books = z.object({
  accepted: z.number(),
  uploaded: z.number(),
  dropped: z.partialRecord(z.enum(drop_reasons), z.number()),
});
/** Since the folder was made: accepted = uploaded + dropped + those that are kept. */
export type FileBooks = z.output<typeof books>;

const journalLine = z.union([
  z.object({ books }),
  z.object({ add: fileEntry, ordered: z.boolean().optional(), announced: z.boolean().optional() }),
  z.object({ id: z.string(), is: z.enum(['ordered', 'announced']) }),
  z.object({ id: z.string(), end: z.enum(['uploaded', ...drop_reasons]) }),
]);
type JournalLine = z.output<typeof journalLine>;

export interface FileLimits {
  readonly bytes_max: number;
  readonly age_max_ms: number;
  /** Free space of the disk that is left to others. */
  readonly free_bytes_min: number;
}

export interface FileStoreOptions {
  readonly dir: string;
  readonly limits: () => FileLimits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A file was given up. */
  readonly onDropped: (file: FileEntry, reason: FileDrop) => void;
  readonly signal: AbortSignal;
}

type Content = NewFile['content'];

/** Every method may reject with `StorageUnavailable`: the disk refuses, and the next call tries again. */
export class FileStore {
  readonly #options: FileStoreOptions;
  /** Oldest first. */
  readonly #files = new Map<string, KeptFile>();
  #books: FileBooks = { accepted: 0, uploaded: 0, dropped: {} };
  #journal: FileHandle | undefined;
  #lines = 0;
  #opening: Promise<void> | undefined;
  /** One change of the journal at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: FileStoreOptions) {
    this.#options = options;
    every(expire_every_ms, options.signal, () => void this.#expire().catch(() => undefined));
  }

  /** Reads what an earlier run left. */
  async open(): Promise<void> {
    this.#opening ??= this.#open();
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw new StorageUnavailable(texts.folder_failed(this.#options.dir, systemReason(error)), {
        cause: error,
      });
    }
  }

  /** Whether there is, or ever was, a file. */
  get isUsed(): boolean {
    return existsSync(this.#journal_path);
  }

  get files(): readonly KeptFile[] {
    return [...this.#files.values()];
  }

  get(id: string): KeptFile | undefined {
    return this.#files.get(id);
  }

  get books(): FileBooks {
    return this.#books;
  }

  get bytes(): number {
    return this.#files.values().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  pathOf(id: string): string {
    return join(this.#options.dir, id);
  }

  /** Resolves once content and journal are on disk. Gives up older files where there is no room. */
  async add(
    content: Content,
    about: Omit<FileEntry, 'id' | 'bytes' | 'sha256' | 'added_ms'>,
  ): Promise<KeptFile> {
    await this.open();
    const id = randomUUID();
    const kept = this.pathOf(id);
    const source = 'path' in content ? content.path : `${kept}.part`;
    try {
      const { bytes, sha256 } = await this.#write(content, source);
      const file = {
        ...about,
        id,
        bytes,
        sha256,
        added_ms: this.#options.now(),
        ordered: false,
        announced: false,
      };
      await this.#inTurn(async () => {
        await this.#makeRoom(bytes);
        await moveOrCopy(source, kept);
        await this.#syncFolder();
        const { ordered: _, announced: __, ...add } = file;
        await this.#record({ add });
        this.#files.set(id, file);
        this.#books.accepted += 1;
      });
      return file;
    } catch (error) {
      // A file of the driver stays its own.
      if ('path' in content) await moveOrCopy(kept, source).catch(() => undefined);
      else for (const path of [source, kept]) await rm(path, { force: true }).catch(() => undefined);
      if (error instanceof CommandRefused || error instanceof StorageUnavailable) throw error;
      throw new StorageUnavailable(texts.file_not_kept(about.name, messageOf(error)), { cause: error });
    }
  }

  async mark(id: string, is: 'ordered' | 'announced'): Promise<void> {
    await this.#inTurn(async () => {
      const file = this.#files.get(id);
      if (!file || file[is]) return;
      await this.#record({ id, is });
      file[is] = true;
    });
  }

  /** Deletes the file. Returns whether it was there. */
  async end(id: string, how: 'uploaded' | FileDrop): Promise<boolean> {
    return this.#inTurn(async () => this.#end(id, how));
  }

  async close(): Promise<void> {
    await this.#turn.catch(() => undefined);
    await this.#journal?.close();
    this.#journal = undefined;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #end(id: string, how: 'uploaded' | FileDrop): Promise<boolean> {
    const file = this.#files.get(id);
    if (!file) return false;
    await this.#record({ id, end: how });
    this.#forget(id, how);
    await rm(this.pathOf(id), { force: true });
    if (how !== 'uploaded') this.#options.onDropped(file, how);
    return true;
  }

  #forget(id: string, how: 'uploaded' | FileDrop): void {
    if (!this.#files.delete(id)) return;
    if (how === 'uploaded') this.#books.uploaded += 1;
    else this.#books.dropped[how] = (this.#books.dropped[how] ?? 0) + 1;
  }

  /** Writes what is no file yet. What `source` names is on the disk when it resolves. */
  async #write(content: Content, source: string): Promise<{ bytes: number; sha256: string }> {
    const { bytes_max } = this.#options.limits();
    const hash = createHash('sha256');
    let bytes = 0;
    await using handle = await open(source, 'path' in content ? 'r' : 'wx', 0o600);
    for await (const chunk of chunksOf(content)) {
      hash.update(chunk);
      bytes += chunk.length;
      if (bytes > bytes_max) throw new CommandRefused(texts.file_too_large(bytes_max));
      if (!('path' in content)) await handle.writeFile(chunk);
    }
    if (bytes === 0) throw new CommandRefused(texts.file_empty);
    await handle.sync();
    return { bytes, sha256: hash.digest('hex') };
  }

  /** Gives up the oldest files, those that were ordered last, until this one has room. */
  async #makeRoom(bytes: number): Promise<void> {
    const { bytes_max, free_bytes_min } = this.#options.limits();
    const { bavail, bsize } = await statfs(this.#options.dir);
    let lacking = Math.max(this.bytes + bytes - bytes_max, free_bytes_min - bavail * bsize);
    const candidates = this.files.toSorted((a, b) => Number(a.ordered) - Number(b.ordered));
    for (const file of candidates) {
      if (lacking <= 0 && this.#files.size < files_max) return;
      await this.#end(file.id, 'evicted');
      lacking -= file.bytes;
    }
    if (lacking > 0) throw new StorageUnavailable(texts.disk_full, { fault: 'full' });
  }

  async #expire(): Promise<void> {
    const before_ms = this.#options.now() - this.#options.limits().age_max_ms;
    for (const { id, added_ms } of this.files) if (added_ms < before_ms) await this.end(id, 'expired');
  }

  async #syncFolder(): Promise<void> {
    await using folder = await open(this.#options.dir, constants.O_RDONLY | constants.O_DIRECTORY);
    await folder.sync();
  }

  async #record(line: JournalLine): Promise<void> {
    if (this.#lines >= journal_lines_max) await this.#compact();
    if (!this.#journal) throw new StorageUnavailable(texts.folder_failed(this.#options.dir, 'closed'));
    // Behind a line that was torn by a full disk, too.
    await this.#journal.appendFile(`\n${JSON.stringify(line)}`);
    await this.#journal.datasync();
    this.#lines += 1;
  }

  get #journal_path(): string {
    return join(this.#options.dir, 'journal');
  }

  async #open(): Promise<void> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    const text = await readTextUpTo(this.#journal_path, journal_bytes_max).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
      throw error;
    });
    for (const line of text.split('\n')) this.#apply(line);
    await this.#compact();
    await this.#reconcile();
  }

  /** A line that a power cut has torn, and lines of another version, say nothing. */
  #apply(text: string): void {
    let raw: unknown;
    try {
      raw = JSON.parse(text);
    } catch {
      return;
    }
    const { data: line } = journalLine.safeParse(raw);
    if (!line) return;
    if ('books' in line) this.#books = line.books;
    else if ('add' in line) {
      const { add, ordered = false, announced = false } = line;
      this.#files.set(add.id, { ...add, ordered, announced });
      this.#books.accepted += 1;
    } else if ('end' in line) this.#forget(line.id, line.end);
    else {
      const file = this.#files.get(line.id);
      if (file) file[line.is] = true;
    }
  }

  /** Writes the journal anew, with what is kept alone. */
  async #compact(): Promise<void> {
    const kept = this.files;
    // The lines of the files that are kept count them once more.
    const before = { ...this.#books, accepted: this.#books.accepted - kept.length };
    const lines: JournalLine[] = [
      { books: before },
      ...kept.map(({ ordered, announced, ...add }) => ({ add, ordered, announced })),
    ];
    await this.#journal?.close();
    await replaceFile(this.#journal_path, lines.map((line) => JSON.stringify(line)).join('\n'));
    this.#journal = await open(this.#journal_path, 'a', 0o600);
    this.#lines = lines.length;
  }

  /** Deletes contents that no line names, and gives up files whose content is gone. */
  async #reconcile(): Promise<void> {
    for (const name of await readdir(this.#options.dir)) {
      if (name !== 'journal' && !this.#files.has(name))
        await rm(this.pathOf(name), { force: true, recursive: true });
    }
    for (const { id, bytes } of this.files) {
      const found = await stat(this.pathOf(id)).catch(() => undefined);
      if (found?.size !== bytes) await this.#end(id, 'lost');
    }
  }
}

function chunksOf(content: Content): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if ('path' in content) return createReadStream(content.path);
  return 'bytes' in content ? [content.bytes] : content.stream;
}

/** A rename where both are on one disk. */
async function moveOrCopy(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
    await copyFile(from, to);
    await rm(from, { force: true });
  }
}
