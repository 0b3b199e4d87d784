/**
 * Sends files to the cloud, one after the other, behind everything else: while live messages wait for the broker it pauses, it keeps to
 * a rate, and it stops at once on a link that does not allow it.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { FileAnswer } from '../../contract/files.ts';
import { DeviceUnreachable, messageOf, RetryLater } from '../../platform/errors.ts';
import { backoff, sleep, within } from '../../platform/time.ts';
import { TokenBucket } from '../../platform/token-bucket.ts';
import { isThisMachine } from '../../platform/networks.ts';
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import type { KeptFile } from './file-store.ts';
import type { KitFiles } from './kit-files.ts';
import { HashRefused, PermitRefused, TusUpload, type TusWay } from './tus.ts';
import { texts } from './texts.ts';

/** What the configuration allows on a link. */
export type UploadRule = 'never' | 'on_order' | 'always';

export interface UploaderOptions {
  /** As `TusWay`. `way`: the interface on which the connection stays; null: not known. */
  readonly connect: (
    ...to: Parameters<TusWay['connect']>
  ) => Promise<Awaited<ReturnType<TusWay['connect']>> & { readonly way?: string | null }>;
  readonly files: KitFiles;
  /** What holds on this interface, on that of the session where none is known; undefined: no session with the broker. */
  readonly rule: (way: string | null) => UploadRule | undefined;
  /** The interface by which the kernel reaches the host of this address; null: not known. */
  readonly wayTo: (url: URL) => Promise<string | null>;
  /** Whether live messages wait for the broker. */
  readonly isBusy: () => boolean;
  /** 0: no limit. */
  readonly bytesPerS: () => number;
  /** Pauses after failures; left out: some seconds to some minutes. */
  readonly retry?: { readonly first_ms: number; readonly max_ms: number };
  /** Between two looks for a file to send, and for the link. */
  readonly look_ms?: number;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

const look_default_ms = 1_000;
/** Until the cloud answers a request. A broker may take it much later. */
const answer_ms = 30_000;
const pause_ms = 20;
const retry_default = { first_ms: 2_000, max_ms: 300_000 };
/** Of a file whose upload is refused for good as long as nothing changes. */
const refused_ms = 300_000;
/** Most that a bucket lets through at once. */
const burst_bytes = 64 * 1024;

class NotAllowed extends Error {}

export class Uploader {
  readonly #options: UploaderOptions;
  readonly #look_ms: number;
  /** The file whose answer is awaited. */
  #asked: { readonly id: string; readonly answered: (answer: FileAnswer) => void } | undefined;
  /** By file: not before, monotonic. */
  readonly #later = new Map<string, number>();
  readonly #tus: TusUpload;
  #sending: KeptFile | undefined;
  /** Where the last file went. */
  #target: URL | undefined;
  #way: string | null = null;
  #looked_ms = 0;
  #bucket: { readonly rate: number; readonly tokens: TokenBucket } | undefined;
  #pauses: ReturnType<typeof backoff>;
  #sent_bytes = 0;
  #fault: string | null = null;

  constructor(options: UploaderOptions) {
    this.#options = options;
    this.#look_ms = options.look_ms ?? look_default_ms;
    this.#pauses = this.#newPauses();
    this.#tus = new TusUpload({
      connect: async (url, signal) => {
        this.#target = url;
        await this.#findWay();
        await this.#pace(0, signal);
        const { way = null, ...opened } = await options.connect(url, signal);
        this.#way = way ?? this.#way;
        return opened;
      },
      pace: async (bytes, signal) => this.#pace(bytes, signal),
      onSent: (bytes) => (this.#sent_bytes += bytes),
    });
  }

  /** Bytes of files that were written to the network, and why the last attempt failed; null: it did not. */
  get view(): { readonly sent_bytes: number; readonly fault: string | null } {
    return { sent_bytes: this.#sent_bytes, fault: this.#fault };
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      if (this.#options.files.store.files.length > 0) await this.#findWay();
      const file = this.#next();
      if (file) await this.#attempt(file);
      else await sleep(this.#look_ms, signal);
    }
  }

  async answer(file_id: string, answer: FileAnswer): Promise<void> {
    await this.#options.files.answer(file_id, answer);
    if (this.#asked?.id === file_id && answer.want !== 'order') this.#asked.answered(answer);
  }

  /** Another link may lead there than to the broker. */
  async #findWay(): Promise<void> {
    this.#looked_ms = performance.now();
    if (this.#target) this.#way = await this.#options.wayTo(this.#target).catch(() => null);
  }

  #rule(): UploadRule | undefined {
    return this.#options.rule(this.#way);
  }

  /** What was ordered first, else the oldest. */
  #next(): KeptFile | undefined {
    const rule = this.#rule();
    if (rule === undefined || rule === 'never') return undefined;
    const now_ms = performance.now();
    const due = this.#options.files.store.files.filter(({ id }) => (this.#later.get(id) ?? 0) <= now_ms);
    return due.find(({ ordered }) => ordered) ?? (rule === 'always' ? due[0] : undefined);
  }

  async #attempt(file: KeptFile): Promise<void> {
    const { log, signal } = this.#options;
    const before_bytes = this.#sent_bytes;
    try {
      await this.#send(file);
      this.#pauses = this.#newPauses();
      if (this.#fault !== null) log.info({}, texts.upload_restored);
      this.#fault = null;
    } catch (error) {
      if (signal.aborted || error instanceof NotAllowed || this.#rule() === undefined) return;
      // With a new permit it may go on at once, unless the same came of the last one.
      const isFirst = error instanceof PermitRefused && this.#fault === null;
      if (this.#fault === null) log.warn({ id: file.id, reason: messageOf(error) }, texts.upload_failed);
      this.#fault = messageOf(error);
      // Links that are cut again and again must not end in pauses of minutes.
      if (this.#sent_bytes - before_bytes > burst_bytes) this.#pauses = this.#newPauses();
      const pause = error instanceof RetryLater ? error.retry_ms : this.#pauses.next().value;
      await sleep(isFirst ? 0 : pause, signal);
    }
  }

  #newPauses(): ReturnType<typeof backoff> {
    const { first_ms, max_ms } = this.#options.retry ?? retry_default;
    return backoff(first_ms, max_ms);
  }

  /** Resolves when the file is gone from the kit, or the cloud wants it later. */
  async #send(file: KeptFile): Promise<void> {
    const { store } = this.#options.files;
    const answer = await this.#ask(file);
    this.#later.delete(file.id);
    if (answer?.want === 'later') {
      this.#later.set(file.id, performance.now() + answer.retry_s * 1_000);
      return;
    }
    if (answer?.want !== 'upload') {
      if (store.get(file.id)) throw new DeviceUnreachable(texts.no_answer);
      return;
    }
    if (!isAllowed(answer.url)) throw new RetryLater(texts.url_refused(answer.url), refused_ms);
    const gone = this.#await(file.id);
    this.#sending = file;
    try {
      await this.#tus.send({ path: store.pathOf(file.id), bytes: file.bytes }, answer, this.#options.signal);
      // It says so once it has checked the hash; else it is asked again.
      if (store.get(file.id)) await within(answer_ms, gone.answer, this.#options.signal);
    } catch (error) {
      if (error instanceof HashRefused && (await this.#isDamaged(file))) await store.end(file.id, 'lost');
      throw error;
    } finally {
      gone.stop();
    }
  }

  async #ask(file: KeptFile): Promise<FileAnswer | undefined> {
    const awaited = this.#await(file.id);
    this.#options.files.report(file, 'requesting');
    try {
      return await within(answer_ms, awaited.answer, this.#options.signal);
    } finally {
      awaited.stop();
    }
  }

  #await(id: string): { readonly answer: Promise<FileAnswer>; readonly stop: () => void } {
    const { promise, resolve } = Promise.withResolvers<FileAnswer>();
    const asked = { id, answered: resolve };
    this.#asked = asked;
    return {
      answer: promise,
      stop: () => {
        if (this.#asked === asked) this.#asked = undefined;
      },
    };
  }

  /** Resolves when so many bytes may leave: there is nothing more urgent, and the rate allows it. */
  async #pace(bytes: number, signal: AbortSignal): Promise<void> {
    const { isBusy, bytesPerS } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      if (!(await this.#mayLeave())) throw new NotAllowed(texts.moved);
      const rate = bytesPerS();
      if (this.#bucket?.rate !== rate) {
        this.#bucket = { rate, tokens: new TokenBucket({ perSecond: rate, burst: burst_bytes }) };
      }
      const wait_ms = isBusy()
        ? pause_ms
        : rate === 0
          ? 0
          : this.#bucket.tokens.wait_ms(performance.now(), bytes);
      if (wait_ms === 0) break;
      await sleep(Math.min(wait_ms, this.#look_ms), signal);
    }
    this.#bucket.tokens.take(performance.now(), bytes);
  }

  /** Whether the present link allows this file. */
  async #mayLeave(): Promise<boolean> {
    if (performance.now() - this.#looked_ms > this.#look_ms) await this.#findWay();
    const rule = this.#rule();
    return rule === 'always' || (rule === 'on_order' && this.#sending?.ordered === true);
  }

  /** Whether the content is no longer what was announced. */
  async #isDamaged({ id, sha256 }: KeptFile): Promise<boolean> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(this.#options.files.store.pathOf(id)) as AsyncIterable<Buffer>)
      hash.update(chunk);
    return hash.digest('hex') !== sha256;
  }
}

/** Files may show people and places: they leave the machine by TLS only. */
function isAllowed(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || isThisMachine(hostname);
}
