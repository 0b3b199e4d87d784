/** Reads large replies in a thread of their own, which is there only while such replies come and is replaced when one stalls it. */
import { Worker } from 'node:worker_threads';
import type { DriverLog } from '../../src/driver/driver.ts';
import { failure, type Reading } from './soap-call.ts';

/** A thread that has been reading one reply for so long will not come back soon. */
const stall_ms = 1_500;
/** Loading its program takes a slow gateway a second. */
const start_ms = 10_000;
/** After the last large reply; 20 MB are not kept for the one that may follow tomorrow. */
const idle_ms = 10_000;
/** Replies of all cameras together that wait to be read: one of each at the most that can be configured. */
const waiting_max = 64;
/** The worst reply within the limits of size and elements needs half; what took more would end the thread, not the daemon. */
const memory = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 4 };

/** `ready` once, then one reading for each reply that it was given. */
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

/** Guards the thread and the replies that wait for it. Nothing here ever rejects: what goes wrong is a reading. */
export class LargeReplies {
  readonly #parts: LargeRepliesParts;
  readonly #waiting: Job[] = [];
  #worker: Worker | undefined;
  #isReady = false;
  /** The one that the thread is reading. Only one at a time: so it is known whose reply stalls it. */
  #reading: Job | undefined;
  /** Of the start of the thread, of the reply that it reads, or of its idleness. */
  #timer: NodeJS.Timeout | undefined;
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

  /** Reads a reply in its turn. One that waits when `signal` aborts is not read any more. */
  async read(xml: string, signal: AbortSignal): Promise<Reading> {
    if (this.#parts.signal.aborted || signal.aborted)
      return failure('interrupted', 'it is too late to read it');
    if (this.#waiting.length >= waiting_max) {
      return failure('interrupted', 'too many large replies wait to be read');
    }
    const { promise, resolve } = Promise.withResolvers<Reading>();
    const job: Job = { xml, settle: resolve };
    const leave = (): void => {
      const index = this.#waiting.indexOf(job);
      if (index === -1) return;
      this.#waiting.splice(index, 1);
      resolve(failure('interrupted', 'its reply could not be read in time, since others were read first'));
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
      this.#worker.postMessage(this.#reading.xml);
      this.#after(stall_ms, () => this.#replace('its reply could not be read in any reasonable time'));
    } else this.#after(this.#parts.idle_ms ?? idle_ms, () => this.#end());
  }

  #start(): void {
    const script = this.#parts.script ?? new URL('./reply-worker.ts', import.meta.url);
    const worker = new Worker(script, { resourceLimits: memory });
    this.#worker = worker;
    this.starts += 1;
    worker.on('message', (said: FromReplyThread) => {
      if (worker === this.#worker) this.#hear(said);
    });
    worker.on('error', (error: unknown) => {
      if (worker === this.#worker) this.#fail(error);
    });
    worker.on('exit', (code) => {
      if (worker === this.#worker) this.#fail(new Error(`it ended with ${code}`));
    });
    this.#after(start_ms, () => this.#fail(new Error(`it did not start within ${start_ms / 1_000} s`)));
  }

  #hear(said: FromReplyThread): void {
    if (said === 'ready') {
      this.#isReady = true;
      if (this.#isBroken) this.#parts.log.info({}, 'the large replies of cameras are read again');
      this.#isBroken = false;
    } else {
      this.#reading?.settle(said);
      this.#reading = undefined;
    }
    this.#next();
  }

  /** A thread that fails while it reads fails by what it reads; one that does not even start is no camera's fault. */
  #fail(error: unknown): void {
    if (this.#reading) {
      this.#replace('reading its reply takes more memory than there is for it');
      return;
    }
    if (!this.#isBroken) {
      this.#parts.log.warn({ err: error }, 'the thread that reads the large replies of cameras cannot run');
    }
    this.#isBroken = true;
    this.#end();
    for (const { settle } of this.#waiting.splice(0)) {
      settle(failure('interrupted', 'the thread that reads large replies cannot run'));
    }
  }

  /** The camera at fault is told so; the others' replies are read by the next thread. */
  #replace(reason: string): void {
    this.stalls += 1;
    this.#reading?.settle(failure('stalled', reason));
    this.#reading = undefined;
    this.#end();
    this.#next();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isReady = false;
    if (worker) this.#ended = Promise.all([this.#ended, worker.terminate()]);
  }

  #abort(): void {
    this.#end();
    const jobs = this.#reading ? [this.#reading, ...this.#waiting] : this.#waiting;
    for (const { settle } of jobs) settle(failure('interrupted', 'the connector stops'));
    this.#waiting.length = 0;
    this.#reading = undefined;
  }

  /** The thread's answer may lie in the queue behind a busy moment of this one: that is heard before anything is concluded. */
  #after(ms: number, conclude: () => void): void {
    clearTimeout(this.#timer);
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (timer === this.#timer) conclude();
      });
    }, ms);
    timer.unref();
    this.#timer = timer;
  }
}
