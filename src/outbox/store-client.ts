/** The store as the main thread sees it: the same requests, answered in order by the thread that owns SQLite. */
import { Worker } from 'node:worker_threads';
import { InvariantBroken, messageOf, StorageUnavailable } from '../errors.ts';
import type { Opened, StoreOptions, StoreRequests } from './protocol.ts';
import type { Answer, Failure, Request } from './thread-messages.ts';

/** Every request may reject with `StorageUnavailable`: the disk does not take it, or the thread is gone. */
export type StoreClient = {
  readonly [K in keyof StoreRequests]: (
    ...args: Parameters<StoreRequests[K]>
  ) => Promise<ReturnType<StoreRequests[K]>>;
} & {
  /** Resolves when the thread has ended after `close`; rejects with `StorageUnavailable` when it ends by itself. */
  readonly closed: Promise<void>;
};

interface Waiting {
  /** Whoever asked knows what the value is. */
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** A small young generation keeps a thread that only passes rows on from growing; the rest is far more than it needs. */
const memory = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 } as const;

let prepared: Worker | undefined;

/**
 * Starts the thread before it is known which file it shall open: it loads its code while this one loads its own, a tenth of
 * a second sooner. The process may end without ever using it.
 */
export function prepareStore(): void {
  prepared ??= startThread();
  prepared.unref();
}

function startThread(): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), { resourceLimits: memory });
}

/**
 * Starts the thread, or takes the prepared one, and opens the buffer file in it. Closes it when `signal` aborts.
 * Rejects with `StorageUnavailable` when the file's folder is missing; a failing disk shows in `opened.health`.
 */
export async function startStore(
  options: StoreOptions,
  signal?: AbortSignal,
): Promise<{ readonly client: StoreClient; readonly opened: Opened }> {
  const worker = prepared ?? startThread();
  prepared = undefined;
  worker.ref();
  const calls = new Calls(worker);
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
    release: calls.method('release'),
    releaseAll: calls.method('releaseAll'),
    resendUnconfirmed: calls.method('resendUnconfirmed'),
    confirm: calls.method('confirm'),
    admit: calls.method('admit'),
    findTask: calls.method('findTask'),
    listTasks: calls.method('listTasks'),
    setClockOffset: calls.method('setClockOffset'),
    inspect: calls.method('inspect'),
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

  constructor(worker: Worker) {
    this.#worker = worker;
    this.opened = new Promise<Opened>((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    worker.on('message', (answer: Answer) => this.#settle(answer));
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
    // Every request tells of the end as well: nobody has to listen here.
    this.closed.catch(() => undefined);
  }

  method<K extends keyof StoreRequests>(
    method: K,
  ): (...args: Parameters<StoreRequests[K]>) => Promise<ReturnType<StoreRequests[K]>> {
    return async (...args) =>
      new Promise<ReturnType<StoreRequests[K]>>((resolve, reject) => {
        if (this.#ended) {
          reject(this.#ended);
          return;
        }
        this.#closing ||= method === 'close';
        this.#last_id += 1;
        this.#waiting.set(this.#last_id, { resolve, reject });
        this.#worker.postMessage({ id: this.#last_id, method, args } satisfies Request);
      });
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (!waiting) return;
    if ('failure' in answer) waiting.reject(errorOf(answer.failure));
    else waiting.resolve(answer.value);
  }

  #end(code: number): { readonly ended: StorageUnavailable; readonly expected: boolean } {
    const expected = this.#closing && this.#crash === undefined;
    const why = this.#crash === undefined ? `exit code ${code}` : messageOf(this.#crash);
    const sentence = expected ? 'the buffer is closed' : `the thread of the buffer ended (${why})`;
    const ended = new StorageUnavailable(sentence, { cause: this.#crash });
    this.#ended = ended;
    for (const { reject } of this.#waiting.values()) reject(ended);
    this.#waiting.clear();
    return { ended, expected };
  }
}

function errorOf({ unavailable, message }: Failure): Error {
  return unavailable ? new StorageUnavailable(message) : new InvariantBroken(message);
}
