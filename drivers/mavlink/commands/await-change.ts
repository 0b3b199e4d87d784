/** Waits for a change in what a vehicle reports. */
import { aborted, deadline } from '../../../src/platform/time.ts';
import type { Addressee } from './exchange.ts';
import { texts } from './texts.ts';

/** Notifies waiting commands that the vehicle's data may have changed. */
export class Changes {
  readonly #listeners = new Set<() => void>();

  notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Resolves with the first defined result of `look`, now or after a change; undefined after `ms` or when `signal` aborts. */
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
    const cancel = deadline(ms, stop);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await aborted(over.signal);
      return found;
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
      this.#listeners.delete(listener);
    }
  }
}

/** Returns a function that gives the reason why later messages may not show the effect of the command `what`. */
export function interruptionOf(to: Addressee, what: string): () => string | undefined {
  const hasRestarted = to.watchStart();
  return () => {
    if (hasRestarted()) return texts.interrupted(to.name, what);
    const conflict = to.conflict();
    return conflict === undefined ? undefined : texts.about(to.name, conflict);
  };
}
