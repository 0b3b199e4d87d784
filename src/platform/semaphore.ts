/** Semaphores: limit how much work is done at a time. More of it waits, in order, for a limited time, or is refused. */
import { turn } from './time.ts';

/** Does the work when its turn has come. Rejects as the work does, and when it may not wait any longer. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** Gives the place back; calls after the first one do nothing. */
export type Leave = () => void;

export interface WaitLimits {
  /** Left out: as long as it takes. */
  readonly wait_max_ms?: number;
  /** How much work may wait; left out: as much as comes. */
  readonly waiting_max?: number;
  /** Makes the error of work that has waited for longer, or would be too much. */
  readonly refusal?: () => Error;
}

export class Semaphore {
  readonly #max: number;
  readonly #limits: WaitLimits;
  #held = 0;
  /** Each takes a place that has become free; the first one has waited longest. */
  readonly #waiting = new Set<() => void>();

  /** `max`: places that are held at a time. */
  constructor(max: number, limits: WaitLimits = {}) {
    this.#max = max;
    this.#limits = limits;
  }

  /** No place is held, and nothing waits. */
  get isIdle(): boolean {
    return this.#held === 0;
  }

  /** Does the work in a place. Rejects as the work does, or with the refusal. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const leave = await this.take();
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Takes a place if one is free. */
  tryTake(): Leave | undefined {
    if (this.#held >= this.#max) return undefined;
    this.#held += 1;
    return this.#leaver();
  }

  /** Waits for a place. Rejects with the refusal when none became free in time, or too much waits. */
  async take(): Promise<Leave> {
    const leave = this.tryTake();
    if (leave) return leave;
    await this.#turn();
    return this.#leaver();
  }

  #leaver(): Leave {
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      const [next] = this.#waiting;
      // The place goes to the next one without becoming free.
      if (next) next();
      else this.#held -= 1;
    };
  }

  async #turn(): Promise<void> {
    const { wait_max_ms, waiting_max = Infinity, refusal = refused } = this.#limits;
    if (this.#waiting.size >= waiting_max) throw refusal();
    await new Promise<void>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const take = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(take);
        resolve();
      };
      this.#waiting.add(take);
      if (wait_max_ms === undefined) return;
      timer = setTimeout(() => {
        this.#waiting.delete(take);
        reject(refusal());
      }, wait_max_ms);
    });
  }
}

function refused(): Error {
  return new Error('too much work at a time');
}

/** A semaphore for each key. Keys without work are forgotten. */
export class KeyedSemaphore {
  readonly #max: number;
  readonly #limits: WaitLimits;
  readonly #byKey = new Map<string, Semaphore>();

  /** `max` and `limits`: of one key. */
  constructor(max: number, limits: WaitLimits = {}) {
    this.#max = max;
    this.#limits = limits;
  }

  /** As `Semaphore.run`, for this key. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const leave = await this.take(key);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** As `Semaphore.tryTake`, for this key. */
  tryTake(key: string): Leave | undefined {
    const semaphore = this.#of(key);
    const leave = semaphore.tryTake();
    return leave && this.#forgetting(key, semaphore, leave);
  }

  /** As `Semaphore.take`, for this key. */
  async take(key: string): Promise<Leave> {
    const semaphore = this.#of(key);
    const free = semaphore.tryTake();
    if (free) return this.#forgetting(key, semaphore, free);
    const leave = await semaphore.take();
    // What a database in the same process answers takes no turn of the event loop: all that wait would run in one.
    await turn();
    return this.#forgetting(key, semaphore, leave);
  }

  #of(key: string): Semaphore {
    const semaphore = this.#byKey.get(key) ?? new Semaphore(this.#max, this.#limits);
    this.#byKey.set(key, semaphore);
    return semaphore;
  }

  #forgetting(key: string, semaphore: Semaphore, leave: Leave): Leave {
    return () => {
      leave();
      if (semaphore.isIdle && this.#byKey.get(key) === semaphore) this.#byKey.delete(key);
    };
  }
}
