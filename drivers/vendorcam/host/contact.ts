/** Connection state of a host, for its commands and the log. */

export interface ContactState {
  readonly isUp: boolean;
  /** Rises with each new connection or session, so that a restart between two polls shows too. */
  readonly starts: number;
}

export class Contact {
  #state: ContactState = { isUp: false, starts: 0 };
  #changed = Promise.withResolvers<void>();
  /** Until then a lost host is retried soon, since a restart was requested. */
  #expected_until_ms = 0;

  get state(): ContactState {
    return this.#state;
  }

  get isExpectedBack(): boolean {
    return performance.now() < this.#expected_until_ms;
  }

  expectBack(within_ms: number): void {
    this.#expected_until_ms = performance.now() + within_ms;
  }

  up(): void {
    this.#set({ isUp: true, starts: this.#state.starts + 1 });
  }

  down(): void {
    if (this.#state.isUp) this.#set({ ...this.#state, isUp: false });
  }

  /** Resolves when `holds`, or with false when `signal` aborts first. */
  async until(holds: (state: ContactState) => boolean, signal: AbortSignal): Promise<boolean> {
    const over = Promise.withResolvers<void>();
    const onAbort = (): void => over.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      while (!signal.aborted) {
        if (holds(this.#state)) return true;
        await Promise.race([this.#changed.promise, over.promise]);
      }
      return false;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #set(state: ContactState): void {
    this.#state = state;
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}
