/** Gives the operating system back what the C library keeps of memory that was freed: a start leaves several megabytes. */
import { libc } from './libc.ts';
import { every, sleep } from './time.ts';

/** Drivers have found their devices and hot code is compiled. */
const first_after_ms = 60_000;
/** It takes some milliseconds. */
const period_ms = 600_000;

/** Gives back until `signal` aborts; does nothing where the C library has no such function. */
export async function giveBackMemory(signal: AbortSignal): Promise<void> {
  await sleep(first_after_ms, signal);
  if (signal.aborted) return;
  const { malloc_trim } = await libc();
  if (!malloc_trim) return;
  malloc_trim(0);
  every(period_ms, signal, () => void malloc_trim(0));
}
