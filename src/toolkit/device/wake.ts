/** Wakes a loop before its time. */
import { sleep } from '../../platform/time.ts';

/** A wake-up without a waiter ends the next wait immediately. */
export class Wake {
  #rung = new AbortController();

  readonly trigger = (): void => this.#rung.abort();

  /** Resolves after `ms`, after a ring, or when `signal` aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, AbortSignal.any([signal, this.#rung.signal]));
    if (this.#rung.signal.aborted) this.#rung = new AbortController();
  }
}
