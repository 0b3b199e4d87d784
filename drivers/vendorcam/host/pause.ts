/** The pause between two polls, which news may shorten. */
import { sleep } from '../../../src/platform/time.ts';

export class Pause {
  readonly #gap_ms: number;
  #over = new AbortController();

  /** @param gap_ms Length of a shortened pause. */
  constructor(gap_ms: number) {
    this.#gap_ms = gap_ms;
  }

  async take(ms: number, signal: AbortSignal): Promise<void> {
    const least_ms = Math.min(ms, this.#gap_ms);
    await sleep(least_ms, signal);
    await sleep(ms - least_ms, AbortSignal.any([signal, this.#over.signal]));
    this.#over = new AbortController();
  }

  /** Shortens the pause, or the next one. */
  shorten(): void {
    this.#over.abort();
  }
}
