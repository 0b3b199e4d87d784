/** Stalls of a process: what it could not receive meanwhile is no silence of others. */
import { every } from './time.ts';

const look_every_ms = 250;
/** A process that did not run for this long has stalled: it was stopped, or the machine had no processor for it. */
const stall_min_ms = 500;

/** What one process knows of its stalls. The simulator runs many processes in one. */
export class Stalls {
  #watchers = 0;
  #ran_ms = Number.NEGATIVE_INFINITY;
  #resumed_ms = Number.NEGATIVE_INFINITY;

  /** Notices stalls until `signal` aborts. Without it, none are known. */
  watch(signal: AbortSignal): void {
    if (signal.aborted) return;
    if (this.#watchers === 0) this.#ran_ms = performance.now();
    this.#watchers += 1;
    const unwatch = (): void => {
      this.#watchers -= 1;
    };
    signal.addEventListener('abort', unwatch, { once: true });
    every(look_every_ms, signal, () => this.#look());
  }

  /** As `silenceSince` below. */
  silenceSince(last_ms: number, now_ms: number): number {
    this.#look();
    return now_ms - Math.max(last_ms, this.#resumed_ms);
  }

  /** Also called by each reader: after a stall a socket may be read before the timer runs. */
  #look(): void {
    if (this.#watchers === 0) return;
    const now_ms = performance.now();
    if (now_ms - this.#ran_ms >= stall_min_ms) this.#resumed_ms = now_ms;
    this.#ran_ms = now_ms;
  }
}

/** Those of this process. */
export const own_stalls = new Stalls();

/**
 * Returns for how long a device that was last received at `last_ms` could have been received and was not: after a stall
 * this counts from its end, since what arrived meanwhile still waits in the socket. Both moments are `performance.now()`.
 */
export function silenceSince(last_ms: number, now_ms: number = performance.now()): number {
  return own_stalls.silenceSince(last_ms, now_ms);
}
