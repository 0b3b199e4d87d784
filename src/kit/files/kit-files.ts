/** Files for the cloud: takes them from drivers, announces them, and does what the cloud asks for. */
import { rm } from 'node:fs/promises';
import { type FileAnswer, type FileReport, thumbnail_bytes_max } from '../../contract/files.ts';
import { assetId } from '../../contract/identity.ts';
import { jsonObject } from '../../contract/json.ts';
import { channels } from '../../contract/topics.ts';
import { cut, name_chars_max } from '../../contract/limits.ts';
import { CommandRefused, messageOf, StorageUnavailable } from '../../platform/errors.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import type { DriverLog, NewFile } from '../../toolkit/driver/driver.ts';
import type { Appender } from '../outbox/api.ts';
import { type FileBooks, type FileDrop, type FileEntry, type FileLimits, FileStore } from './file-store.ts';
import { texts } from './texts.ts';

export interface KitFilesOptions {
  readonly kit_id: string;
  readonly dir: string;
  readonly limits: () => FileLimits;
  readonly outbox: Appender & { readonly committed: () => Promise<void> };
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Writes a support bundle to this path, where there is no file yet. Left out: this process cannot. */
  readonly writeBundle?: ((path: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** For status: accepted = uploaded + dropped + kept. */
export interface FilesView extends FileBooks {
  readonly kept: { readonly files: number; readonly bytes: number; readonly ordered: number };
  readonly bytes_max: number;
}

export class KitFiles {
  readonly #options: KitFilesOptions;
  readonly store: FileStore;
  readonly addBundle: ((signal: AbortSignal) => Promise<string>) | undefined;

  constructor(options: KitFilesOptions) {
    this.#options = options;
    this.store = new FileStore({ ...options, onDropped: (file, reason) => this.#dropped(file, reason) });
    const { writeBundle } = options;
    this.addBundle = writeBundle && (async (signal) => this.#addBundle(writeBundle, signal));
  }

  /** Reads what an earlier run left; what it did not announce is announced now. Never rejects. */
  async open(): Promise<void> {
    if (!this.store.isUsed) return;
    try {
      await this.store.open();
      for (const file of this.store.files) if (!file.announced) await this.#announce(file);
    } catch (error) {
      this.#options.log.warn({ reason: String(error) }, texts.files_unavailable);
    }
  }

  /** Resolves with the id once the file is on disk; from then on it is not lost by a power cut. */
  async add({ content, thumbnail, asset_key, at_ms, alarms, ...about }: NewFile): Promise<string> {
    const { kit_id, log } = this.#options;
    const file = await this.store.add(content, {
      kind: about.kind,
      content_type: about.content_type ?? 'application/octet-stream',
      name: cut(cleanText(about.name), name_chars_max) || about.kind,
      asset_id: asset_key === null ? null : assetId(kit_id, asset_key),
      at_ms,
      ...(alarms && { alarms: [...alarms] }),
    });
    log.info({ id: file.id, kind: file.kind, bytes: file.bytes, name: file.name }, texts.file_added);
    void this.#announce(file, thumbnail).catch(() => undefined);
    return file.id;
  }

  /** The cloud asks for something; what concerns a running upload is done by `Uploader`. */
  async answer(file_id: string, answer: FileAnswer): Promise<void> {
    const file = this.store.get(file_id);
    // What the kit no longer has was deleted by the cloud's word, or given up, which it has reported.
    if (!file) return;
    if (answer.want === 'order') await this.store.mark(file_id, 'ordered');
    if (answer.want === 'deletion') await this.store.end(file_id, 'unwanted');
    if (answer.want === 'nothing' && answer.sha256 === file.sha256) {
      if (await this.store.end(file_id, 'uploaded')) this.report(file, 'uploaded');
      this.#options.log.info({ id: file_id, kind: file.kind, bytes: file.bytes }, texts.file_sent);
    }
  }

  /** The cloud asks for everything that the kit has. */
  announceAll(): void {
    for (const file of this.store.files) this.report(file, 'stored');
  }

  report(file: FileEntry, state: FileReport['state'], more: Partial<FileReport> = {}): void {
    const { id, kind, asset_id, name, content_type, bytes, sha256, alarms } = file;
    const at = new Date(file.at_ms).toISOString();
    const about = { id, kind, asset_id, name, content_type, at, bytes, sha256, ...(alarms && { alarms }) };
    const data = jsonObject.parse({ ...about, state, reason: null, ...more });
    this.#options.outbox.append({ channel: channels.file(id), lane: 'alarm', data, is_behind: true });
  }

  view(): FilesView {
    const { store } = this;
    const { files } = store;
    const ordered = files.filter((file) => file.ordered).length;
    return {
      ...store.books,
      dropped: { ...store.books.dropped },
      kept: { files: files.length, bytes: store.bytes, ordered },
      bytes_max: this.#options.limits().bytes_max,
    };
  }

  async #addBundle(write: NonNullable<KitFilesOptions['writeBundle']>, signal: AbortSignal): Promise<string> {
    await this.store.open();
    const at_ms = this.#options.now();
    const path = this.store.pathOf(`bundle-${at_ms}`);
    try {
      await write(path, signal);
      const name = `support ${new Date(at_ms).toISOString().slice(0, 19).replaceAll(/[:T]/gu, '-')}.tar.gz`;
      const about = { kind: 'support_bundle', asset_key: null, content_type: 'application/gzip' } as const;
      return await this.add({ ...about, name, at_ms, content: { path } });
    } catch (error) {
      if (error instanceof CommandRefused || error instanceof StorageUnavailable) throw error;
      throw new CommandRefused(texts.bundle_failed(messageOf(error)), { cause: error });
    } finally {
      await rm(path, { force: true });
    }
  }

  async #announce(file: FileEntry, thumbnail?: Uint8Array): Promise<void> {
    const isSmall = thumbnail && thumbnail.length <= thumbnail_bytes_max;
    this.report(file, 'stored', isSmall ? { thumbnail: Buffer.from(thumbnail).toString('base64') } : {});
    await this.#options.outbox.committed();
    await this.store.mark(file.id, 'announced');
  }

  #dropped(file: FileEntry, reason: FileDrop): void {
    const { id, kind, bytes } = file;
    this.#options.log.warn({ id, kind, bytes, reason }, texts.file_dropped);
    this.report(file, 'dropped', { reason: texts.dropped[reason] });
  }
}
