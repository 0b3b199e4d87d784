/** The store on SQLite for the rest of the service: every call goes to the thread that owns the file. */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { z } from 'zod';
import { InvariantBroken, messageOf, SchemaRefused, StorageUnavailable } from '../../platform/errors.ts';
import { sleep } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Upgrade } from '../sql/schema.ts';
import { texts } from '../texts.ts';
import type { Store } from './sql-store.ts';

/** What the thread is started with. */
export interface ThreadOptions {
  readonly file: string;
  readonly keepsHistory: boolean;
  readonly upgrade: Upgrade;
}

export interface ThreadCall {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface ThreadReply {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: { readonly kind: 'refused' | 'unavailable' | 'broken'; readonly message: string };
}

/** An error for the log, sent without a call. */
export interface ThreadNotice {
  readonly facts: object;
  readonly sentence: string;
}

interface Waiting {
  readonly method: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Several times the need of a transaction of 500 messages of the largest size. */
const heap_default_mb = 128;
const young_mb = 4;
/** Pause before a restart when the thread crashed before it opened the file or answered. */
const reopen_pause_ms = 1_000;

/** Starts the thread and opens the file in it. Rejects with `StorageUnavailable` when the file cannot be used. */
export async function openThreadStore(
  file: string,
  {
    heap_mb = heap_default_mb,
    keepsHistory = true,
    upgrade = 'alone',
    error = () => undefined,
  }: {
    readonly heap_mb?: number;
    readonly keepsHistory?: boolean;
    readonly upgrade?: Upgrade;
    readonly error?: ServiceLog['error'] | undefined;
  } = {},
): Promise<Store> {
  const store = new ThreadStore({ file, keepsHistory, upgrade }, heap_mb, error);
  await store.open();
  return callsOf(store);
}

/**
 * Calls the thread, and replaces it after a crash. The call that crashed it is rejected as permanent, so that the caller can
 * isolate the faulty message of a commit; all other calls may be repeated.
 */
class ThreadStore {
  readonly #options: ThreadOptions;
  readonly #limits: ResourceLimits;
  readonly #waiting = new Map<number, Waiting>();
  readonly #error: ServiceLog['error'];
  #worker: Worker | undefined;
  #opening: Promise<void> | undefined;
  #last_id = 0;
  #isClosed = false;
  /** Whether the last thread had answered anything: else the restart is delayed. */
  #hasAnswered = true;

  constructor(options: ThreadOptions, heap_mb: number, error: ServiceLog['error']) {
    this.#options = options;
    this.#error = error;
    this.#limits = { maxYoungGenerationSizeMb: young_mb, maxOldGenerationSizeMb: heap_mb };
  }

  async open(): Promise<void> {
    this.#opening ??= this.#start().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async ask(method: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#isClosed) throw new StorageUnavailable(texts.database_closed);
    if (!this.#worker) await this.open();
    this.#isClosed ||= method === 'close';
    const id = (this.#last_id += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { method, resolve, reject });
      this.#worker?.postMessage({ id, method, args } satisfies ThreadCall);
    });
  }

  async #start(): Promise<void> {
    if (!this.#hasAnswered) await sleep(reopen_pause_ms, new AbortController().signal);
    this.#hasAnswered = false;
    const worker = new Worker(new URL('./thread.ts', import.meta.url), { resourceLimits: this.#limits });
    let reason = 'exited';
    worker.on('message', (message: ThreadReply | ThreadNotice) => {
      if ('sentence' in message) this.#error(message.facts, message.sentence);
      else this.#settle(message);
    });
    worker.on('error', (error) => (reason = messageOf(error)));
    worker.on('exit', () => this.#onExit(worker, reason));
    const opened = new Promise<unknown>((resolve, reject) =>
      this.#waiting.set(0, { method: 'open', resolve, reject }),
    );
    worker.postMessage(this.#options);
    await opened;
    this.#worker = worker;
  }

  #settle({ id, value, fault }: ThreadReply): void {
    const asked = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (id > 0) this.#hasAnswered = true;
    if (fault) asked?.reject(errorOf(fault));
    else asked?.resolve(value);
  }

  #onExit(worker: Worker, reason: string): void {
    if (this.#worker === worker) this.#worker = undefined;
    const calls = [...this.#waiting.values()];
    this.#waiting.clear();
    // The thread processes calls in order: the oldest one crashed it.
    const [first, ...others] = calls;
    const sentence = `the database thread ended: ${reason}`;
    const isFault = first && first.method !== 'open' && first.method !== 'close' && !this.#isClosed;
    first?.reject(isFault ? new InvariantBroken(sentence) : new StorageUnavailable(sentence));
    for (const { reject } of others) reject(new StorageUnavailable(sentence));
  }
}

/** Nothing is checked: the types are those of the store in the thread, which has a method for each call. */
const calls = z.custom<Store>();

/** A store whose methods are calls to the thread, whatever their names. */
function callsOf(store: ThreadStore): Store {
  const handler: ProxyHandler<object> = {
    get: (_, name) =>
      // A promise that resolves with this object asks whether it is a promise itself.
      typeof name === 'symbol' || name === 'then'
        ? undefined
        : async (...args: readonly unknown[]) => store.ask(name, args),
  };
  return calls.parse(new Proxy({}, handler));
}

function errorOf({ kind, message }: NonNullable<ThreadReply['fault']>): Error {
  if (kind === 'refused') return new SchemaRefused(message);
  return kind === 'unavailable' ? new StorageUnavailable(message) : new InvariantBroken(message);
}
