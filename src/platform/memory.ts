/** Keeps the process small: its heap grows in small steps, and memory freed after the start is released. */
import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { libc } from './linux/libc.ts';
import { every, sleep } from './time.ts';

/** A collection comes when the heap has grown by so much, not when it has doubled: a draining backlog costs half. */
const growing_percent = 20;

/** The code of the drivers is loaded. */
const slowly_after_ms = 5_000;
/** Drivers have found their devices and hot code is compiled. */
const first_after_ms = 30_000;
/** It takes some milliseconds. */
const period_ms = 600_000;

/** Makes the heap grow in small steps once the code is loaded, and releases freed memory, until `signal` aborts. */
export async function keepSmall(signal: AbortSignal): Promise<void> {
  await sleep(slowly_after_ms, signal);
  if (signal.aborted) return;
  growSlowly();
  await sleep(first_after_ms - slowly_after_ms, signal);
  if (signal.aborted) return;
  await giveBack();
  every(period_ms, signal, () => void giveBack());
}

/**
 * No option of the command line, and not set before the code is loaded: V8 takes no code that was compiled under other
 * settings, and so neither the cache on disk nor the built-in code of Node.js. The pace holds from the next
 * collection on, which runs at once.
 */
export function growSlowly(): void {
  flushCompileCache();
  setFlagsFromString(`--heap-growing-percent=${growing_percent}`);
  // The young generation is so small that waking threads for it takes longer than collecting it.
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') Reflect.apply(collect, undefined, []);
}

/** Releases the freed memory that the C library keeps. */
async function giveBack(): Promise<void> {
  try {
    (await libc()).malloc_trim?.(0);
  } catch {
    // Without the binding to the C library the memory stays as it is.
  }
}
