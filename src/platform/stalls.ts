/** Stalls of a process: what it could not receive meanwhile is no silence of others. */
import { every } from './time.ts';

const look_every_ms = 250;
/** A process that did not run for this long has stalled: it was stopped, or the machine had no processor for it. */
const stall_min_ms = 500;
/** What arrived during a stall is read within this time after it. */
const read_ms = 500;
/** Of more stalls the earlier ones are forgotten: no silence counts from before their end. */
const stalls_max = 256;

interface Stall {
  readonly from_ms: number;
  readonly to_ms: number;
}

/** What one process knows of its stalls. The simulator runs many processes in one. */
export class Stalls {
  #watchers = 0;
  #ran_ms = Number.NEGATIVE_INFINITY;
  /** In the order of time. */
  readonly #stalls: Stall[] = [];
  #forgotten_ms = Number.NEGATIVE_INFINITY;

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
    const begin_ms = Math.max(last_ms, this.#forgotten_ms);
    let silence_ms = now_ms - begin_ms;
    let counted_to_ms = now_ms;
    for (const { from_ms, to_ms } of this.#stalls.toReversed()) {
      if (to_ms <= begin_ms) break;
      const end_ms = Math.min(counted_to_ms, to_ms + read_ms);
      silence_ms -= Math.max(0, end_ms - Math.max(begin_ms, from_ms));
      counted_to_ms = Math.min(counted_to_ms, from_ms);
    }
    return silence_ms;
  }

  /** Also called by each reader: after a stall a socket may be read before the timer runs. */
  #look(): void {
    if (this.#watchers === 0) return;
    const now_ms = performance.now();
    if (now_ms - this.#ran_ms >= stall_min_ms) this.#add({ from_ms: this.#ran_ms, to_ms: now_ms });
    this.#ran_ms = now_ms;
  }

  #add(stall: Stall): void {
    this.#stalls.push(stall);
    if (this.#stalls.length > stalls_max) this.#forgotten_ms = this.#stalls.shift()?.to_ms ?? stall.to_ms;
  }
}

/** Those of this process. */
export const own_stalls = new Stalls();

/**
 * Returns for how long a device that was last received at `last_ms` could have been received and was not: the time of stalls
 * does not count, nor the moment after each in which the socket's buffered data is read. Both moments are `performance.now()`.
 */
export function silenceSince(last_ms: number, now_ms: number = performance.now()): number {
  return own_stalls.silenceSince(last_ms, now_ms);
}
