/**
 * Virtual time, as a setup file: timers and clocks of the process follow a clock that moves to the next timer as soon as nothing
 * is left to do. Sockets stay real: the clock stands still while anything arrives. So a test waits for nothing, and a busy machine
 * makes no deadline pass. Not for tests whose peers are other processes or threads: these live in real time. It stays for the rest of
 * the process, which files of this time alone share.
 */
import { performance } from 'node:perf_hooks';
import { TimerHandle } from './timer-handle.ts';

/** The clock moves after so many turns of the event loop in which nothing arrived. */
const quiet_turns = 6;
/** Each look at the clock takes some time, so that an answer is later than its question. */
const look_ms = 0.001;
/** Timers that are due so close to each other run one after the other. */
const same_time_ms = 0.5;
/** What works in the thread pool gets so much real time before the clock moves on. */
const pool_max_ms = 2_000;
/** FSReqPromise, CloseReq, GetAddrInfoReqWrap and others. */
const pool_work = /Req/u;

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  Date: globalThis.Date,
  now: performance.now.bind(performance),
};

let now_ms = real.now();
const epoch_ms = real.Date.now() - now_ms;
/** By the time at which they are due; of those at the same time the first started is first. */
const waiting: VirtualTimer[] = [];
let isPumping = false;

/** What a timer function returns. */
class VirtualTimer extends TimerHandle {
  due_ms = 0;
  readonly #run: () => void;
  readonly #delay_ms: number;
  readonly #repeats: boolean;

  constructor(run: () => void, ms: number | undefined, repeats: boolean) {
    super();
    this.#run = run;
    // As Node.js rounds it.
    this.#delay_ms = ms !== undefined && ms >= 1 && ms < 2 ** 31 ? Math.trunc(ms) : 1;
    this.#repeats = repeats;
    this.refresh();
  }

  /** It is due, and no longer waits. */
  expire(): void {
    if (this.#repeats) this.refresh();
    this.#run();
  }

  refresh(): this {
    this.close();
    this.due_ms = now_ms + this.#delay_ms;
    let at = waiting.length;
    while (at > 0 && (waiting[at - 1]?.due_ms ?? 0) > this.due_ms) at -= 1;
    waiting.splice(at, 0, this);
    if (!isPumping) {
      isPumping = true;
      real.setImmediate(pump);
    }
    return this;
  }

  close(): this {
    const at = waiting.indexOf(this);
    if (at >= 0) waiting.splice(at, 1);
    return this;
  }
}

let turns = 0;
let events = 0;
let event_ms = 0;

/** Runs once in each turn of the event loop while timers wait. */
function pump(): void {
  const timer = waiting[0];
  if (!timer) {
    isPumping = false;
    return;
  }
  try {
    if (timer.due_ms > now_ms + same_time_ms && !isQuiet()) return;
    turns = 0;
    waiting.shift();
    now_ms = Math.max(now_ms, timer.due_ms);
    timer.expire();
  } finally {
    real.setImmediate(pump);
  }
}

function isQuiet(): boolean {
  const seen = performance.nodeTiming.uvMetricsInfo.events;
  if (seen !== events) {
    events = seen;
    event_ms = real.now();
    turns = 0;
  }
  turns += 1;
  if (turns < quiet_turns) return false;
  return (
    !process.getActiveResourcesInfo().some((kind) => pool_work.test(kind)) ||
    real.now() - event_ms > pool_max_ms
  );
}

type Callback = (...args: unknown[]) => void;

function start(repeats: boolean) {
  return (callback: Callback, ms?: number, ...args: unknown[]) =>
    new VirtualTimer(() => callback(...args), ms, repeats);
}

/** Stops a real timer, too: it may be older than the setup. */
function stopper<T>(stop: (timer: T) => void) {
  return (timer: T | VirtualTimer): void => {
    if (timer instanceof VirtualTimer) timer.close();
    else stop(timer);
  };
}

class VirtualDate extends real.Date {
  constructor(...args: [] | [string | number]) {
    if (args.length === 0) super(VirtualDate.now());
    else super(...args);
  }

  static override now(): number {
    return Math.floor(epoch_ms + now_ms);
  }
}

const isInstalled = globalThis.Date.name === VirtualDate.name;
if (!isInstalled) {
  Object.assign(globalThis, {
    setTimeout: start(false),
    clearTimeout: stopper(real.clearTimeout),
    setInterval: start(true),
    clearInterval: stopper(real.clearInterval),
    Date: VirtualDate,
  });
  Object.assign(performance, { now: () => (now_ms += look_ms) });
}
