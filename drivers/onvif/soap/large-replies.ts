/** Reads large replies in a worker thread, which is started on demand and replaced when a reply stalls it. */
import { Worker } from 'node:worker_threads';
import type { DriverLog } from '../../../src/driver/driver.ts';
import { deadline, within } from '../../../src/platform/time.ts';
import { failure, type Reading } from './soap-call.ts';
import { texts } from '../texts.ts';

/** Processor time after which a thread counts as stalled by one reply. On a busy gateway that is much longer by the clock. */
const stall_cpu_ms = 1_500;
/** The same by the clock, whatever the thread had of the processor. */
const stall_ms = 20_000;
/** Between two looks at a thread that is slow. */
const look_every_ms = 250;
/**
 * Loading its program takes a second on a slow gateway, and many seconds on a busy one. With a shorter limit a busy gateway would start
 * the thread again for each reply and never read one.
 */
const start_ms = 60_000;
/** Limit of the wait of a reply: a reply ahead of it may stall the thread, until the next thread has started. */
export const read_max_ms = stall_ms + start_ms;
/** Time after the last large reply until the thread ends, which frees 20 MB. */
const idle_ms = 10_000;
/** A thread that was started slowly stays for so many times as long as its start took. */
const idle_starts = 10;
/** Queued replies of all cameras: one for each of the cameras that can be configured. */
const waiting_max = 64;
/** The worst reply within the limits of size and elements needs half; a larger need ends the thread, not the daemon. */
const memory = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };

/** `ready` once, then one reading for each reply. */
export type FromReplyThread = 'ready' | Reading;

export interface LargeRepliesParts {
  readonly log: DriverLog;
  /** Ends the thread; replies that are being read end as interrupted. */
  readonly signal: AbortSignal;
  /** What the thread runs, when it is not reply-worker.ts. */
  readonly script?: URL;
  readonly idle_ms?: number;
}

interface Job {
  readonly xml: string;
  readonly settle: (reading: Reading) => void;
}

/** The thread with its queue of replies. Never rejects: failures are readings. */
export class LargeReplies {
  readonly #parts: LargeRepliesParts;
  readonly #waiting: Job[] = [];
  #worker: Worker | undefined;
  #isReady = false;
  #started_ms = 0;
  #start_took_ms = 0;
  /** The reply that the thread is reading. One at a time, so that the stalling reply is known. */
  #reading: Job | undefined;
  /** Of the start of the thread, of the reply that it reads, or of its idleness. */
  #cancel: (() => void) | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #isBroken = false;
  /** Threads that were started, and replies that stalled one. */
  starts = 0;
  stalls = 0;

  constructor(parts: LargeRepliesParts) {
    this.#parts = parts;
    parts.signal.addEventListener('abort', () => this.#abort(), { once: true });
  }

  get state(): 'absent' | 'starting' | 'idle' | 'reading' {
    if (!this.#worker) return 'absent';
    if (!this.#isReady) return 'starting';
    return this.#reading ? 'reading' : 'idle';
  }

  /** Reads a reply in its turn. A reply still queued when `signal` aborts is dropped. */
  async read(xml: string, signal: AbortSignal): Promise<Reading> {
    if (this.#parts.signal.aborted || signal.aborted) return failure('interrupted', texts.cancelled_unread);
    if (this.#waiting.length >= waiting_max) {
      return failure('interrupted', texts.replies_queue_full);
    }
    const { promise, resolve } = Promise.withResolvers<Reading>();
    const job: Job = { xml, settle: resolve };
    const leave = (): void => {
      const index = this.#waiting.indexOf(job);
      if (index === -1) return;
      this.#waiting.splice(index, 1);
      resolve(failure('interrupted', texts.reply_not_in_time));
    };
    signal.addEventListener('abort', leave, { once: true });
    this.#waiting.push(job);
    this.#next();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Resolves when no thread is left; asked after the signal has aborted. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  #next(): void {
    if (this.#reading) return;
    if (!this.#worker) {
      if (this.#waiting.length > 0) this.#start();
      return;
    }
    if (!this.#isReady) return;
    this.#reading = this.#waiting.shift();
    if (this.#reading) {
      this.#watch(this.#worker, this.#reading);
      this.#worker.postMessage(this.#reading.xml);
    } else this.#after(this.#idleMs(), () => this.#end());
  }

  /** Replaces the thread once the reply that it reads has had its time. */
  #watch(worker: Worker, job: Job): void {
    const begun_ms = performance.now();
    const before = cpuMs(worker);
    const look = async (): Promise<void> => {
      // A thread within one long call of its engine does not answer.
      const used_ms = await within(look_every_ms, Promise.all([before, cpuMs(worker)]));
      if (job !== this.#reading) return;
      const isOver =
        (used_ms && used_ms[1] - used_ms[0] >= stall_cpu_ms) || performance.now() - begun_ms >= stall_ms;
      if (isOver) this.#replace(texts.reply_slow);
      else this.#after(look_every_ms, () => void look());
    };
    this.#after(stall_cpu_ms, () => void look());
  }

  #idleMs(): number {
    return this.#parts.idle_ms ?? Math.max(idle_ms, idle_starts * this.#start_took_ms);
  }

  #start(): void {
    const script = this.#parts.script ?? new URL('./reply-worker.ts', import.meta.url);
    const worker = new Worker(script, { resourceLimits: memory });
    this.#worker = worker;
    this.starts += 1;
    this.#started_ms = performance.now();
    worker.on('message', (message: FromReplyThread) => {
      if (worker === this.#worker) this.#receive(message);
    });
    worker.on('error', (error: unknown) => {
      if (worker === this.#worker) this.#fail(error);
    });
    worker.on('exit', (code) => {
      if (worker === this.#worker) this.#fail(new Error(`it ended with ${code}`));
    });
    this.#after(start_ms, () => this.#fail(new Error(`it did not start within ${start_ms / 1_000} s`)));
  }

  #receive(message: FromReplyThread): void {
    if (message === 'ready') {
      this.#isReady = true;
      this.#start_took_ms = performance.now() - this.#started_ms;
      if (this.#isBroken) this.#parts.log.info({}, texts.parser_restarted);
      this.#isBroken = false;
    } else {
      this.#reading?.settle(message);
      this.#reading = undefined;
    }
    this.#next();
  }

  /** Handles a crash: while reading, its reply is the cause; without a reply, no camera is at fault. */
  #fail(error: unknown): void {
    if (this.#reading) {
      this.#replace(texts.reply_memory);
      return;
    }
    if (!this.#isBroken) {
      this.#parts.log.warn({ err: error }, texts.parser_crashed);
    }
    this.#isBroken = true;
    this.#end();
    for (const { settle } of this.#waiting.splice(0)) {
      settle(failure('interrupted', texts.parser_down));
    }
  }

  /** Fails the reply at fault; the others are read by the next thread. */
  #replace(reason: string): void {
    this.stalls += 1;
    this.#reading?.settle(failure('stalled', reason));
    this.#reading = undefined;
    this.#end();
    this.#next();
  }

  #end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isReady = false;
    if (worker) this.#ended = Promise.all([this.#ended, worker.terminate()]);
  }

  #abort(): void {
    this.#end();
    const jobs = this.#reading ? [this.#reading, ...this.#waiting] : this.#waiting;
    for (const { settle } of jobs) settle(failure('interrupted', texts.connector_stopping));
    this.#waiting.length = 0;
    this.#reading = undefined;
  }

  /** Runs after pending messages: the thread's answer may already be queued while this thread was busy. */
  #after(ms: number, conclude: () => void): void {
    this.#cancel?.();
    const cancel = deadline(ms, () => {
      setImmediate(() => {
        if (cancel === this.#cancel) conclude();
      });
    });
    this.#cancel = cancel;
  }
}

/** Processor time of a thread since its start; 0 after its end. */
async function cpuMs(worker: Worker): Promise<number> {
  const { user, system } = await worker.cpuUsage().catch(() => ({ user: 0, system: 0 }));
  return (user + system) / 1_000;
}
