/**
 * Receives files of kits by the core protocol of tus 1.0, keeps them in a folder, and tells the kits what is wanted. A permit is good
 * for one file: its hash is in the table, the text goes to the kit alone. Replicas may share the folder: what two of them write at
 * one place of a file is the same, and its hash is checked at the end.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileAnswer, FileKind } from '../../contract/files.ts';
import { messageOf } from '../../platform/errors.ts';
import { day_ms, everyInTurn } from '../../platform/time.ts';
import { RequestProblem } from '../api/problem.ts';
import { hashOf } from '../hash.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Change, Committed } from '../stored/stored.ts';
import type { Changes } from '../changes.ts';
import { texts } from '../texts.ts';
import { file_kinds, type FilePlace, type FilesStore, type Permit, type StoredFile } from './file-store.ts';

export interface FileSettings {
  /** Absolute; made when it is missing. */
  readonly dir: string;
  /** Where kits reach the service, without a slash at the end. */
  readonly url: string;
  readonly bytes_max: number;
  /** Days that a content is kept, by kind; `default` for the others. */
  readonly days: Readonly<Partial<Record<FileKind, number>>> & { readonly default: number };
}

/** To the kit; rejects when it could not be sent. */
export type SendFile = (kit_id: string, file_id: string, answer: FileAnswer) => Promise<void>;

interface CloudFilesParts {
  readonly store: FilesStore;
  readonly send: SendFile;
  readonly changes: Changes;
  /** A content is here, whole. */
  readonly onStored: (bytes: number) => void;
  readonly log: ServiceLog;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

const permit_ms = 3_600_000;
const full_retry_s = 3_600;
const lost_retry_s = 60;
/** The room is promised to others. */
const promised_retry_s = 60;
/** What came of a file is kept so long for the rest of it. */
const part_kept_ms = 7 * day_ms;
const trim_every_ms = 60_000;
/** Contents that are deleted for the room of one. */
const evicted_max = 1_000;

/** The whole content has another hash than was announced: it is sent again from the beginning. */
export class HashMismatch extends Error {}

export class CloudFiles {
  readonly #settings: FileSettings;
  readonly #parts: CloudFilesParts;
  /** The request that writes each upload: a later one ends it, since a broken connection may not be noticed for long (tus-java-server 69). */
  readonly #writing = new Map<string, { readonly over: AbortController; readonly done: Promise<void> }>();

  constructor(settings: FileSettings, parts: CloudFilesParts) {
    this.#settings = settings;
    this.#parts = parts;
    everyInTurn(trim_every_ms, parts.signal, async () =>
      this.trim().catch((error: unknown) => {
        parts.log.warn({ reason: messageOf(error) }, texts.log_files_failed);
      }),
    );
  }

  /** Answers what the kits of a commit asked for, names what they need not keep, and repeats orders to those that connected. */
  note({ files, births }: Pick<Committed, 'files' | 'births'>): void {
    for (const file of files) void this.#answer(file).catch((error: unknown) => this.#failed(file, error));
    for (const kit_id of births) void this.#repeatOrders(kit_id).catch(() => undefined);
  }

  /** Asks the kit for a file, also over a link on which it sends none by itself. An offline kit is asked when it connects. */
  async order(place: FilePlace): Promise<void> {
    this.#publish([await this.#parts.store.orderFile(place, this.#parts.now())]);
    await this.#parts.send(place.kit_id, place.file_id, { want: 'order' }).catch(() => undefined);
  }

  async remove(place: FilePlace): Promise<void> {
    this.#publish([await this.#parts.store.deleteFile(place)]);
    await this.#forget(place);
    await this.trim();
    await this.#parts
      .send(place.kit_id, place.file_id, { want: 'deletion', reason: texts.file_deleted })
      .catch(() => undefined);
  }

  /** Deletes the contents of a kit that is kept no longer. */
  async removeKit(kit_id: string): Promise<void> {
    await rm(join(this.#settings.dir, kit_id), { recursive: true, force: true });
  }

  pathOf({ kit_id, file_id }: FilePlace): string {
    return join(this.#settings.dir, kit_id, file_id);
  }

  /** Throws `unavailable` where the folder lacks it: the database was restored alone, or a disk is not mounted (immich-app/immich#2344). */
  async wholePathOf(file: StoredFile): Promise<string> {
    const path = this.pathOf(file);
    if ((await sizeOf(path)) === file.data.bytes) return path;
    const { kit_id, file_id } = file;
    this.#parts.log.warn({ kit_id, file_id, path }, texts.file_lost);
    throw new RequestProblem('unavailable', texts.file_lost, { retry_after_s: lost_retry_s });
  }

  /** Deletes contents that are not wanted any more, or are too old. */
  async trim(): Promise<void> {
    const { store, now } = this.#parts;
    for (const kind of file_kinds) {
      const days = this.#settings.days[kind] ?? this.#settings.days.default;
      this.#publish(await store.expireFiles(kind, now() - days * day_ms));
    }
    for (const file of await store.deletedFiles(now() - part_kept_ms)) await this.#forget(file);
  }

  /** Deletes its content, and what came of it before a cut. */
  async #forget(place: FilePlace): Promise<void> {
    for (const end of ['', '.part']) await rm(this.pathOf(place) + end, { force: true });
    await this.#parts.store.fileRemoved(place);
  }

  /** The file that the permit is for. Throws `unauthorised` for any other permit, and for one that has expired. */
  async permitted(place: FilePlace, token: string): Promise<StoredFile> {
    const file = await this.#parts.store.file(place);
    const expected = Buffer.from(file?.token_hash ?? hashOf(''), 'hex');
    const isRight = timingSafeEqual(Buffer.from(hashOf(token), 'hex'), expected);
    if (!file?.token_hash || !isRight || (file.token_ms ?? 0) < this.#parts.now())
      throw new RequestProblem('unauthorised', texts.no_permit);
    return file;
  }

  /**
   * How many bytes are here. A request that is still writing ends. What is whole is finished, since a client takes it for done: the
   * service was killed before it had checked or entered it. Throws `HashMismatch`.
   */
  async offset(file: StoredFile): Promise<number> {
    return this.#alone(file, async (path) => {
      const { bytes } = file.data;
      if ((await this.#parts.store.file(file))?.state === 'stored') return bytes;
      if ((await sizeOf(this.pathOf(file))) === bytes) await rename(this.pathOf(file), path);
      const offset = await sizeOf(path);
      if (offset === bytes) await this.#finish(file, path);
      return offset;
    });
  }

  /** Appends the body. Returns the new offset; `undefined`: `at` is not the present one. Throws `HashMismatch`. */
  async append(file: StoredFile, at: number, body: AsyncIterable<Uint8Array>): Promise<number | undefined> {
    return this.#alone(file, async (path, signal) => {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      if ((await sizeOf(path)) !== at) return undefined;
      const offset = await this.#write(file, { path, at, body, signal });
      if (offset === file.data.bytes) await this.#finish(file, path);
      else this.#publish([await this.#parts.store.fileProgress(file, offset, this.#parts.now())]);
      return offset;
    });
  }

  /** Once the request before has ended. `path`: of what is not whole yet. */
  async #alone<T>(file: StoredFile, work: (path: string, signal: AbortSignal) => Promise<T>): Promise<T> {
    await this.#interrupt(file.file_id);
    const over = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#writing.set(file.file_id, { over, done });
    try {
      return await work(`${this.pathOf(file)}.part`, over.signal);
    } finally {
      this.#writing.delete(file.file_id);
      resolve();
    }
  }

  #publish(changes: readonly Change[]): void {
    this.#parts.changes.publish(changes);
  }

  async #write(
    file: StoredFile,
    {
      path,
      at,
      body,
      signal,
    }: { path: string; at: number; body: AsyncIterable<Uint8Array>; signal: AbortSignal },
  ): Promise<number> {
    await using handle = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    let offset = at;
    try {
      for await (const chunk of body) {
        if (signal.aborted) break;
        if (offset + chunk.length > file.data.bytes)
          throw new RequestProblem('too-large', texts.upload_too_long);
        await handle.write(chunk, 0, chunk.length, offset);
        offset += chunk.length;
      }
    } finally {
      // What came before a cut is kept.
      await handle.datasync();
    }
    return offset;
  }

  async #finish(file: StoredFile, path: string): Promise<void> {
    const { store, send, log, now } = this.#parts;
    const { sha256, bytes, kind } = file.data;
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
    const { kit_id, file_id } = file;
    if (hash.digest('hex') !== sha256) {
      await rm(path, { force: true });
      this.#publish([await store.fileProgress(file, 0, now())]);
      log.warn({ kit_id, file_id }, texts.log_file_hash);
      throw new HashMismatch(texts.upload_hash);
    }
    await rename(path, this.pathOf(file));
    await using folder = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
    await folder.sync();
    this.#publish([await store.fileStored(file, now())]);
    this.#parts.onStored(bytes);
    log.info({ kit_id, file_id, kind, bytes }, texts.log_file_stored);
    // If this is lost the kit asks again.
    void send(kit_id, file_id, { want: 'nothing', sha256 }).catch(() => undefined);
  }

  async #interrupt(file_id: string): Promise<void> {
    for (let writing = this.#writing.get(file_id); writing; writing = this.#writing.get(file_id)) {
      writing.over.abort();
      await writing.done;
    }
  }

  async #answer({ state: reported, ...place }: Committed['files'][number]): Promise<void> {
    const { store, send } = this.#parts;
    const file = await store.file(place);
    if (file?.state === 'dropped') return this.#forget(place);
    const isOver = file?.state === 'deleted' || file?.state === 'stored';
    if (reported !== 'requesting' && !(reported === 'stored' && isOver)) return;
    const answer: FileAnswer = file
      ? await this.#answerTo(file)
      : { want: 'later', retry_s: full_retry_s, reason: texts.file_unknown };
    await send(place.kit_id, place.file_id, answer);
  }

  async #answerTo(file: StoredFile): Promise<FileAnswer> {
    const { now } = this.#parts;
    const { sha256, bytes } = file.data;
    if (file.state === 'deleted') return { want: 'deletion', reason: texts.file_deleted };
    if (file.state === 'stored') return { want: 'nothing', sha256 };
    const token = randomBytes(24).toString('base64url');
    const until_ms = now() + permit_ms;
    const retry_s = await this.#permit(file, { hash: hashOf(token), until_ms, now_ms: now(), bytes });
    if (retry_s !== undefined) return { want: 'later', retry_s, reason: texts.files_full };
    const url = `${this.#settings.url}/uploads/${file.kit_id}/${file.file_id}`;
    return { want: 'upload', url, token, expires_at: new Date(until_ms).toISOString() };
  }

  /** Deletes the oldest contents for it. Returns when it may be asked for again; undefined: it is permitted. */
  async #permit(file: StoredFile, permit: Omit<Permit, 'bytes_max'>): Promise<number | undefined> {
    const { store } = this.#parts;
    const { bytes_max } = this.#settings;
    if (permit.bytes > bytes_max) return full_retry_s;
    for (let left = evicted_max; left > 0; left -= 1) {
      const { kept, promised } = await store.permitFile(file, { ...permit, bytes_max });
      if (kept + promised + permit.bytes <= bytes_max) return undefined;
      const oldest = promised + permit.bytes <= bytes_max ? await store.oldestFile() : undefined;
      if (!oldest) return promised_retry_s;
      this.#publish([await store.deleteFile(oldest)]);
      await this.trim();
    }
    return promised_retry_s;
  }

  async #repeatOrders(kit_id: string): Promise<void> {
    for (const { file_id } of await this.#parts.store.orderedFiles(kit_id))
      await this.#parts.send(kit_id, file_id, { want: 'order' });
  }

  /** The kit asks again. */
  #failed({ kit_id, file_id }: FilePlace, error: unknown): void {
    this.#parts.log.warn({ kit_id, file_id, reason: messageOf(error) }, texts.log_files_failed);
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
