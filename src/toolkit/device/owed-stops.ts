/** Stops that moving devices still owe: recorded on disk before a movement starts, until the device has confirmed the stop. */

export interface OwedStopsParts<K extends string | number> {
  /** What an earlier run moved without a confirmed stop. */
  readonly owed: readonly K[];
  /** Resolves also when the disk write fails. */
  readonly save: (owed: readonly K[]) => Promise<void>;
}

/** By motor: a channel of a recorder, a profile of a camera. */
export class OwedStops<K extends string | number> {
  readonly #owed: Set<K>;
  readonly #save: OwedStopsParts<K>['save'];
  /** Movements in progress, which send their stop themselves. */
  readonly #moves = new Map<Promise<unknown>, K>();
  /** Callbacks of callers that wait until a stop is owed. */
  readonly #waiting = new Set<() => void>();
  #isSettling = false;

  constructor({ owed, save }: OwedStopsParts<K>) {
    this.#owed = new Set(owed);
    this.#save = save;
  }

  /** Records that the motor may move; resolves when it is on disk. Call it before the movement is sent. */
  async owe(motor: K): Promise<void> {
    if (this.#owed.has(motor)) return;
    this.#owed.add(motor);
    for (const resolve of this.#waiting) resolve();
    await this.#save([...this.#owed]);
  }

  /** Resolves while a motor owes a stop, or when `signal` aborts. */
  async untilOwed(signal: AbortSignal): Promise<void> {
    if (this.#owed.size > 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    this.#waiting.add(resolve);
    signal.addEventListener('abort', onAbort, { once: true });
    await promise;
    signal.removeEventListener('abort', onAbort);
    this.#waiting.delete(resolve);
  }

  /** The device has confirmed the stop, or the motor has not moved. */
  async confirm(motor: K): Promise<void> {
    if (this.#owed.delete(motor)) await this.#save([...this.#owed]);
  }

  /** Runs a movement that records and confirms its own stop; `settle` leaves its motor alone meanwhile. */
  async during<T>(motor: K, movement: () => Promise<T>): Promise<T> {
    const moving = movement();
    this.#moves.set(moving, motor);
    try {
      return await moving;
    } finally {
      this.#moves.delete(moving);
    }
  }

  /**
   * Stops every motor that owes a stop and is not in a movement; `stop` confirms it. Rejects with the first failure. Does
   * nothing while an earlier call waits for a slow device.
   */
  async settle(stop: (motor: K) => Promise<unknown>): Promise<void> {
    if (this.#isSettling) return;
    this.#isSettling = true;
    try {
      const moving = new Set(this.#moves.values());
      for (const motor of this.#owed) {
        if (!moving.has(motor)) await stop(motor);
      }
    } finally {
      this.#isSettling = false;
    }
  }

  /** Resolves when no movement is in progress; their signals have aborted. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#moves.keys());
  }
}
