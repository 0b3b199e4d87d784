/** Waiting for something that a vehicle shows. */
import { sleep } from '../../src/platform/time.ts';

/** Tells those who wait that something may have changed. */
export class Changes {
  readonly #listeners = new Set<() => void>();

  tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Resolves with what `look` finds, now or after a change; with undefined when `ms` are over or `signal` aborts. */
  async until<T>(look: () => T | undefined, ms: number, signal: AbortSignal): Promise<T | undefined> {
    const first = look();
    if (first !== undefined || signal.aborted) return first;
    const over = new AbortController();
    let found: T | undefined;
    const listener = (): void => {
      found ??= look();
      if (found !== undefined) over.abort();
    };
    this.#listeners.add(listener);
    const stop = (): void => over.abort();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await sleep(ms, over.signal);
      return found;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#listeners.delete(listener);
    }
  }
}
