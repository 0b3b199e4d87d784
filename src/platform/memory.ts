/** Keeps the process small: while it is calm its heap grows in small steps, and memory freed after the start is released. */
import { flushCompileCache } from 'node:module';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { libc } from './linux/libc.ts';
import { every, sleep } from './time.ts';

/** A collection comes when the heap has grown by so much, not when it has doubled: a draining backlog costs half. */
const growing_percent = 20;
/** Collections that compiled code outlives without being run; V8 keeps it for 6. What runs at the start runs no more. */
const code_age_max = 2;
/** A kept slice of a few bytes keeps its whole pool, of 64 KiB in Node.js. */
const pool_bytes = 8_192;
/** How often the load is measured. */
const load_every_ms = 1_000;
/** Share of the time in which the event loop is busy; a kit of nominal size has 4 % of one core to do. */
const busy_above = 0.5;
const calm_below = 0.25;

/**
 * V8 lets the heap grow by 8 MB at least before it collects, keeps compiled code that has not run for long, and spends memory on
 * code that runs a few hundred times. A calm process needs none of this; a draining backlog would take half as long again.
 */
const settings = {
  busy: {
    'incremental-marking-hard-trigger': 0,
    'incremental-marking-soft-trigger': 0,
    'invocation-count-for-maglev': 400,
    'invocation-count-for-turbofan': 3_000,
    'invocation-count-for-osr': 500,
  },
  calm: {
    'incremental-marking-hard-trigger': 25,
    'incremental-marking-soft-trigger': 25,
    'invocation-count-for-maglev': 4_000,
    'invocation-count-for-turbofan': 30_000,
    'invocation-count-for-osr': 5_000,
  },
} as const;
export type Load = keyof typeof settings;

/** Parameters of `mallopt` in glibc. */
const m_trim_threshold = -1;
const m_mmap_threshold = -3;
/** A buffer of this size gets separate pages, which return to the kernel when it is freed. */
const own_pages_bytes = 1024 ** 2;
/** Free memory at the end of the heap that the C library keeps. */
const free_end_bytes = 2 * 1024 ** 2;

/** The code of the drivers is loaded. */
const slowly_after_ms = 5_000;
/** Drivers have found their devices and hot code is compiled. */
const first_after_ms = 30_000;
/** It takes half a millisecond and frees 1.5 MB each time. */
const period_ms = 60_000;

/** Makes the heap grow in small steps once the code is loaded, and releases freed memory, until `signal` aborts. */
export async function keepSmall(signal: AbortSignal): Promise<void> {
  await sleep(slowly_after_ms, signal);
  if (signal.aborted) return;
  growSlowly(signal);
  await returnLargeBuffers();
  await sleep(first_after_ms - slowly_after_ms, signal);
  if (signal.aborted) return;
  await giveBack();
  every(period_ms, signal, () => void giveBack());
}

/**
 * No option of the command line, and not set before the code is loaded: V8 takes no code that was compiled under other
 * settings, and so neither the cache on disk nor the built-in code of Node.js. The pace holds from the next
 * collection on, which runs at once, and follows the load until `signal` aborts.
 */
export function growSlowly(signal: AbortSignal): void {
  flushCompileCache();
  setFlagsFromString(`--heap-growing-percent=${growing_percent}`);
  setFlagsFromString('--flush-baseline-code');
  setFlagsFromString(`--bytecode-old-age=${code_age_max}`);
  Buffer.poolSize = pool_bytes;
  let load: Load = 'calm';
  apply(load);
  let before = performance.eventLoopUtilization();
  every(load_every_ms, signal, () => {
    const now = performance.eventLoopUtilization();
    const next = loadAfter(load, performance.eventLoopUtilization(now, before).utilization);
    before = now;
    if (next === load) return;
    load = next;
    apply(load);
  });
  // The young generation is so small that waking threads for it takes longer than collecting it.
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') Reflect.apply(collect, undefined, []);
}

/** The load after a time in which the event loop was busy for this share of it. */
export function loadAfter(load: Load, utilization: number): Load {
  if (utilization > busy_above) return 'busy';
  return utilization < calm_below ? 'calm' : load;
}

function apply(load: Load): void {
  for (const [name, value] of Object.entries(settings[load])) setFlagsFromString(`--${name}=${value}`);
}

/**
 * Fixes the size from which a buffer gets separate pages. Left alone, the C library raises it to that of the largest buffer that
 * was freed so far, up to 32 MB, and keeps twice as much: one large message from the cloud then costs its size for long.
 */
export async function returnLargeBuffers(): Promise<void> {
  try {
    const { mallopt } = await libc();
    mallopt?.(m_mmap_threshold, own_pages_bytes);
    mallopt?.(m_trim_threshold, free_end_bytes);
  } catch {
    // As for giveBack.
  }
}

/** Releases the freed memory that the C library keeps. */
async function giveBack(): Promise<void> {
  try {
    (await libc()).malloc_trim?.(0);
  } catch {
    // Without the binding to the C library the memory stays as it is.
  }
}
