/** Keeps the process small: its heaps grow in small steps, and what the start leaves behind is given back. */
import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { libc } from './libc.ts';
import { every, sleep } from './time.ts';

/** A collection comes when a heap has grown by so much, not when it has doubled: a draining backlog costs a fifth. */
const growing_percent = 20;

/** Drivers have found their devices and hot code is compiled. */
const first_after_ms = 60_000;
/** It takes some milliseconds. */
const period_ms = 600_000;

/**
 * Called once everything is loaded, and no option of the command line: V8 takes no code that was compiled under other
 * settings, and so neither the cache on disk nor the code that Node.js brings of its own.
 */
export function growSlowly(): void {
  flushCompileCache();
  setFlagsFromString(`--heap-growing-percent=${growing_percent}`);
}

/**
 * Gives the operating system back what the C library keeps of freed memory, several megabytes after a start, until
 * `signal` aborts. Does nothing where the C library has no such function.
 */
export async function giveBackMemory(signal: AbortSignal): Promise<void> {
  await sleep(first_after_ms, signal);
  if (signal.aborted) return;
  const { malloc_trim } = await libc();
  if (!malloc_trim) return;
  malloc_trim(0);
  every(period_ms, signal, () => void malloc_trim(0));
}
