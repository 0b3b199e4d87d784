/** The main thread's side of the SOAP thread: starts it, gives every call a deadline, and replaces it when it stalls. */
import { Worker } from 'node:worker_threads';
import type { DriverLog } from '../../src/driver/driver.ts';
import { every } from '../../src/platform/time.ts';
import {
  cell_camera,
  cell_count,
  cells,
  type Connection,
  type FailureKind,
  type FromThread,
  type SoapOutcome,
  type SoapRequest,
  type ToThread,
} from './soap-messages.ts';

/** A thread that has been reading one reply for so long will not come back soon. */
const stall_ms = 1_500;
const look_every_ms = 500;
/** After this much beyond its deadline a call was forgotten by the thread. */
const grace_ms = 2_000;
/** Calls of all cameras together that wait for an answer. */
const pending_max = 1_024;
/** 64 cameras need less than a third; what a hostile reply needs more ends the thread, not the daemon. */
const memory = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };

interface Pending {
  readonly camera: number;
  readonly resolve: (outcome: SoapOutcome) => void;
  readonly timer: NodeJS.Timeout;
}

export interface SoapThreadParts {
  readonly log: DriverLog;
  /** Ends the watch over the thread; `stop` ends the thread itself. */
  readonly signal: AbortSignal;
  /** What the thread runs, when it is not soap-worker.ts. */
  readonly script?: URL;
}

/** Guards the thread and the calls under way. Nothing here ever rejects: what goes wrong is an outcome. */
export class SoapThread {
  readonly #log: DriverLog;
  readonly #script: URL;
  readonly #connections = new Map<number, Connection>();
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #marks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * cells));
  #last_id = 0;
  #seen = { count: 0, since_ms: 0 };
  #stopped = false;
  /** Times that the thread was replaced. */
  restarts = 0;

  constructor({ log, signal, script }: SoapThreadParts) {
    this.#log = log;
    this.#script = script ?? new URL('./soap-worker.ts', import.meta.url);
    every(look_every_ms, signal, () => this.#look());
  }

  open(camera: number, connection: Connection): void {
    this.#connections.set(camera, connection);
    this.#send({ kind: 'open', camera, connection });
  }

  close(camera: number): void {
    this.#connections.delete(camera);
    this.#worker?.postMessage({ kind: 'close', camera } satisfies ToThread);
  }

  async call(camera: number, request: SoapRequest): Promise<SoapOutcome> {
    return this.#ask(camera, request.deadline_ms, (id) => ({ kind: 'call', id, camera, request }));
  }

  /** Reads what a camera sent by itself. */
  async parse(camera: number, xml: string): Promise<SoapOutcome> {
    return this.#ask(camera, 0, (id) => ({ kind: 'parse', id, camera, xml }));
  }

  /** Ends the thread; calls under way end as interrupted. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#settleAll('interrupted', 'the connector stops');
    await worker?.terminate();
  }

  async #ask(camera: number, ms: number, order: (id: number) => ToThread): Promise<SoapOutcome> {
    if (this.#stopped) return interrupted('the connector stops');
    if (this.#pending.size >= pending_max) return interrupted('too many calls wait for the SOAP thread');
    const id = ++this.#last_id;
    const { promise, resolve } = Promise.withResolvers<SoapOutcome>();
    // The answer may lie in the queue behind a busy moment of this thread: that is read before anybody is blamed.
    const overdue = (): void => {
      if (this.#pending.has(id)) this.#replace(camera);
    };
    const timer = setTimeout(() => setImmediate(overdue), ms + grace_ms);
    timer.unref();
    this.#pending.set(id, { camera, resolve, timer });
    this.#send(order(id));
    return promise;
  }

  #send(order: ToThread): void {
    if (this.#stopped) return;
    this.#worker ??= this.#start();
    this.#worker.postMessage(order);
  }

  #start(): Worker {
    this.#marks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * cells));
    Atomics.store(this.#marks, cell_camera, -1);
    const worker = new Worker(this.#script, {
      workerData: this.#marks.buffer,
      resourceLimits: memory,
    });
    worker.on('message', ({ id, outcome }: FromThread) => this.#settle(id, outcome));
    worker.on('error', (error: unknown) => {
      this.#log.warn({ err: error }, 'the thread that reads the replies of cameras failed and is replaced');
      if (worker === this.#worker) this.#replace(undefined);
    });
    worker.on('exit', () => {
      if (worker === this.#worker) this.#replace(undefined);
    });
    for (const [camera, connection] of this.#connections) {
      worker.postMessage({ kind: 'open', camera, connection } satisfies ToThread);
    }
    return worker;
  }

  /** A reply that is being read now and was already being read a while ago stalls everybody. */
  #look(): void {
    const count = Atomics.load(this.#marks, cell_count);
    const camera = Atomics.load(this.#marks, cell_camera);
    const now_ms = performance.now();
    if (camera < 0 || count !== this.#seen.count || !this.#worker) {
      this.#seen = { count, since_ms: now_ms };
      return;
    }
    if (now_ms - this.#seen.since_ms >= stall_ms) this.#replace(camera);
  }

  /** The camera at fault is told so; the calls of the others may be made again at once. */
  #replace(at_fault: number | undefined): void {
    const reading = Atomics.load(this.#marks, cell_camera);
    const culprit = reading >= 0 ? reading : at_fault;
    const worker = this.#worker;
    this.#worker = undefined;
    Atomics.store(this.#marks, cell_camera, -1);
    this.restarts += 1;
    void worker?.terminate();
    for (const [id, { camera }] of this.#pending) {
      const outcome: SoapOutcome =
        camera === culprit
          ? { kind: 'failure', why: 'stalled', reason: 'its reply could not be read in any reasonable time' }
          : interrupted('the SOAP thread was replaced');
      this.#settle(id, outcome);
    }
  }

  #settle(id: number, outcome: SoapOutcome): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.resolve(outcome);
  }

  #settleAll(why: FailureKind, reason: string): void {
    for (const id of this.#pending.keys()) this.#settle(id, { kind: 'failure', why, reason });
  }
}

function interrupted(reason: string): SoapOutcome {
  return { kind: 'failure', why: 'interrupted', reason };
}
