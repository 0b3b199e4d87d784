/** Stalls of this process: what it could not receive meanwhile is no silence of others. */
import { every } from './time.ts';

const look_every_ms = 250;
/** A process that did not run for this long has stalled: it was stopped, or the machine had no processor for it. */
const stall_min_ms = 500;

let watchers = 0;
let ran_ms = Number.NEGATIVE_INFINITY;
let resumed_ms = Number.NEGATIVE_INFINITY;

/** Notices stalls until `signal` aborts. Without it, none are known. */
export function watchStalls(signal: AbortSignal): void {
  if (signal.aborted) return;
  if (watchers === 0) ran_ms = performance.now();
  watchers += 1;
  const unwatch = (): void => {
    watchers -= 1;
  };
  signal.addEventListener('abort', unwatch, { once: true });
  every(look_every_ms, signal, look);
}

/**
 * Returns for how long a device that was last received at `last_ms` could have been received and was not: after a stall
 * this counts from its end, since what arrived meanwhile still waits in the socket. Both moments are `performance.now()`.
 */
export function silenceSince(last_ms: number, now_ms: number = performance.now()): number {
  look();
  return now_ms - Math.max(last_ms, resumed_ms);
}

/** Also called by each reader: after a stall a socket may be read before the timer runs. */
function look(): void {
  if (watchers === 0) return;
  const now_ms = performance.now();
  if (now_ms - ran_ms >= stall_min_ms) resumed_ms = now_ms;
  ran_ms = now_ms;
}
