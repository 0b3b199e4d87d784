/** Wakes a loop before its time. */
import { sleep } from '../../src/platform/time.ts';

/** Rings that come while nobody waits end the next wait at once. */
export class Bell {
  #rung = new AbortController();

  readonly ring = (): void => this.#rung.abort();

  /** Resolves after `ms`, after a ring, or when `signal` aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, AbortSignal.any([signal, this.#rung.signal]));
    if (this.#rung.signal.aborted) this.#rung = new AbortController();
  }
}
