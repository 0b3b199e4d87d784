/**
 * Puts the virtual world behind the globals that tell time and give chance. To be imported before any production module:
 * some keep a timer function at their load. Without a world, or outside of its processes, the real ones answer.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import perf_hooks from 'node:perf_hooks';
import { TimerHandle } from '../../support/timer-handle.ts';
import type { Handle, Proc, World } from './scheduler.ts';

const realSetTimeout = globalThis.setTimeout;
const realClearTimeout = globalThis.clearTimeout;
const realSetInterval = globalThis.setInterval;
const realClearInterval = globalThis.clearInterval;
const realSetImmediate = globalThis.setImmediate;
const realClearImmediate = globalThis.clearImmediate;
const realNow = Date.now;
const realRandom = Math.random;
const realPerformanceNow = performance.now.bind(performance);
const realLoopDelay = perf_hooks.monitorEventLoopDelay;
const realUuid = crypto.randomUUID.bind(crypto);

/** The real ones, for the simulator itself. */
export const real = {
  now_ms: realPerformanceNow,
  /** Resolves when all promises and ticks that were due have run. */
  turn: async (): Promise<void> =>
    new Promise((resolve) => {
      realSetImmediate(resolve);
    }),
};

let world: World | undefined;

/** From now on the processes of this world live in it. */
export function inhabit(next: World | undefined): void {
  world = next;
}

/** The world and the process whose code runs now; undefined: it is the real world. */
function here(): { readonly world: World; readonly proc: Proc } | undefined {
  return world?.current && { world, proc: world.current };
}

/** What a timer function answers in the virtual world. */
class VirtualTimer extends TimerHandle {
  handle: Handle | undefined;
  readonly #start: () => Handle;

  constructor(start: (timer: VirtualTimer) => Handle) {
    super();
    this.#start = () => start(this);
    this.handle = this.#start();
  }

  refresh(): this {
    this.close();
    this.handle = this.#start();
    return this;
  }

  close(): this {
    if (this.handle) this.handle.cancelled = true;
    this.handle = undefined;
    return this;
  }
}

type Callback = (...args: unknown[]) => void;

/** As Node rounds it. */
function delayOf(ms: number | undefined): number {
  return ms !== undefined && ms >= 1 ? Math.trunc(ms) : 1;
}

function startTimeout(callback: Callback, ms?: number, ...args: unknown[]): unknown {
  const at = here();
  if (!at) return realSetTimeout(callback, ms, ...args);
  return new VirtualTimer(() => at.world.after(delayOf(ms), at.proc, () => callback(...args)));
}

function startInterval(callback: Callback, ms?: number, ...args: unknown[]): unknown {
  const at = here();
  if (!at) return realSetInterval(callback, ms, ...args);
  return new VirtualTimer((timer) => {
    const next = (): Handle =>
      at.world.after(delayOf(ms), at.proc, () => {
        timer.handle = next();
        callback(...args);
      });
    return next();
  });
}

function startImmediate(callback: Callback, ...args: unknown[]): unknown {
  const at = here();
  if (!at) return realSetImmediate(callback, ...args);
  return new VirtualTimer(() => at.world.after(0, at.proc, () => callback(...args)));
}

function stopper<T>(stop: (timer: T) => void) {
  return (timer: T | VirtualTimer): void => {
    if (timer instanceof VirtualTimer) timer.close();
    else stop(timer);
  };
}

Object.assign(globalThis, {
  setTimeout: startTimeout,
  setInterval: startInterval,
  setImmediate: startImmediate,
  clearTimeout: stopper(realClearTimeout),
  clearInterval: stopper(realClearInterval),
  clearImmediate: stopper(realClearImmediate),
});
Object.assign(Date, {
  now: () => {
    const at = here();
    return at ? Math.floor(at.world.wall(at.proc.machine)) : realNow();
  },
});
Object.assign(Math, { random: () => here()?.world.program.next() ?? realRandom() });
Object.defineProperty(performance, 'now', {
  configurable: true,
  value: () => here()?.world.now_ms ?? realPerformanceNow(),
});
Object.assign(crypto, { randomUUID: () => here()?.world.program.uuid() ?? realUuid() });
/** The event loop of a virtual process is never late by itself. */
const never_late = {
  count: 0,
  mean: 0,
  max: 0,
  percentile: () => 0,
  enable: () => true,
  disable: () => true,
  reset: () => undefined,
};
Object.assign(perf_hooks, {
  monitorEventLoopDelay: (options: Parameters<typeof realLoopDelay>[0]) =>
    here() ? never_late : realLoopDelay(options),
});
syncBuiltinESMExports();
