/** The store as the main thread sees it: the same requests, answered in order by the thread that owns SQLite. */
import { Worker } from 'node:worker_threads';
import { InvariantBroken, messageOf, StorageUnavailable, StorageUnsure } from '../../../platform/errors.ts';
import type {
  Failure,
  Notice,
  Opened,
  OpenOptions,
  Reply,
  StoreOptions,
  StoreRequests,
} from '../protocol.ts';
import { texts } from '../texts.ts';

/** Every request may reject with `StorageUnavailable`: the disk write failed, or the thread has ended. */
export type StoreClient = {
  readonly [K in keyof StoreRequests]: (
    ...args: Parameters<StoreRequests[K]>
  ) => Promise<ReturnType<StoreRequests[K]>>;
} & {
  /** Resolves when the thread has ended after `close`; rejects with `StorageUnavailable` when it ends unexpectedly. */
  readonly closed: Promise<void>;
};

interface Waiting {
  /** The caller knows the type of the value. */
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** Opens the buffer file and serves requests to it: in a thread, unless the caller passes another place. */
export type StartStore = (
  options: StoreOptions,
  onSalvage?: OpenOptions['onSalvage'],
) => Promise<{ readonly client: StoreClient; readonly opened: Opened }>;

/**
 * A small young generation keeps a thread that only passes rows on from growing, but with less than this the rows of a batch
 * outlive it and are copied twice. The rest is far more than it needs.
 */
const memory = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 64 } as const;

/**
 * Starts the thread and opens the buffer file in it. `onSalvage` receives the progress of reading a damaged file.
 * Closes it when `signal` aborts.
 * Rejects with `StorageUnavailable` when the file's folder is missing; a failing disk shows in `opened.health`.
 */
export async function startStore(
  options: StoreOptions,
  onSalvage?: OpenOptions['onSalvage'],
  signal?: AbortSignal,
): Promise<{ readonly client: StoreClient; readonly opened: Opened }> {
  const worker = new Worker(new URL('../store/worker.ts', import.meta.url), { resourceLimits: memory });
  const calls = new Calls(worker, onSalvage);
  worker.postMessage(options);
  const opened = await calls.opened;
  const client = clientOf(calls);
  const close = (): void => void client.close().catch(() => undefined);
  signal?.addEventListener('abort', close, { once: true });
  if (signal?.aborted) close();
  return { client, opened };
}

function clientOf(calls: Calls): StoreClient {
  return {
    closed: calls.closed,
    commit: calls.method('commit'),
    take: calls.method('take'),
    look: calls.method('look'),
    release: calls.method('release'),
    releaseAll: calls.method('releaseAll'),
    resendUnconfirmed: calls.method('resendUnconfirmed'),
    confirm: calls.method('confirm'),
    admit: calls.method('admit'),
    findTask: calls.method('findTask'),
    listTasks: calls.method('listTasks'),
    beginEpoch: calls.method('beginEpoch'),
    setClockOffset: calls.method('setClockOffset'),
    inspect: calls.method('inspect'),
    listQuarantined: calls.method('listQuarantined'),
    findQuarantined: calls.method('findQuarantined'),
    retryQuarantined: calls.method('retryQuarantined'),
    discardQuarantined: calls.method('discardQuarantined'),
    close: calls.method('close'),
  };
}

/** Requests under way. */
class Calls {
  readonly opened: Promise<Opened>;
  readonly closed: Promise<void>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #last_id = 0;
  #closing = false;
  /** Why the thread ended; undefined while it runs. */
  #ended: StorageUnavailable | undefined;
  #crash: unknown;

  constructor(worker: Worker, onSalvage: OpenOptions['onSalvage']) {
    this.#worker = worker;
    this.opened = new Promise<Opened>((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    worker.on('message', (message: Reply<never> | Notice) => {
      if ('salvage' in message) onSalvage?.(message.salvage);
      else this.#settle(message);
    });
    worker.on('error', (error) => {
      this.#crash = error;
    });
    this.closed = new Promise<void>((resolve, reject) => {
      worker.once('exit', (code) => {
        const { ended, expected } = this.#end(code);
        if (expected) resolve();
        else reject(ended);
      });
    });
    // Every request rejects as well when the thread ends: this promise may stay unobserved.
    this.closed.catch(() => undefined);
  }

  method<K extends keyof StoreRequests>(
    method: K,
  ): (...args: Parameters<StoreRequests[K]>) => Promise<ReturnType<StoreRequests[K]>> {
    return async (...args) => {
      if (this.#ended) throw this.#ended;
      this.#closing ||= method === 'close';
      this.#last_id += 1;
      const { promise, resolve, reject } = Promise.withResolvers<ReturnType<StoreRequests[K]>>();
      this.#waiting.set(this.#last_id, { resolve, reject });
      this.#worker.postMessage({ id: this.#last_id, method, args });
      return promise;
    };
  }

  #settle(reply: Reply<never>): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (!waiting) return;
    if ('failure' in reply) waiting.reject(errorOf(reply.failure));
    else waiting.resolve(reply.value);
  }

  #end(code: number): { readonly ended: StorageUnavailable; readonly expected: boolean } {
    const expected = this.#closing && this.#crash === undefined;
    const why = this.#crash === undefined ? `exit code ${code}` : messageOf(this.#crash);
    const sentence = expected ? texts.closed : texts.thread_ended(why);
    const ended = new StorageUnavailable(sentence, { cause: this.#crash });
    this.#ended = ended;
    for (const { reject } of this.#waiting.values()) reject(ended);
    this.#waiting.clear();
    return { ended, expected };
  }
}

function errorOf({ unavailable, unsure, fault, message }: Failure): Error {
  if (unsure) return new StorageUnsure(message, { fault });
  return unavailable ? new StorageUnavailable(message, { fault }) : new InvariantBroken(message);
}
