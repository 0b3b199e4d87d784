/** Limits how much work is done at a time; more of it waits, in order, for a limited time. */
import { turn } from '../platform/time.ts';

export interface SlotLimits {
  readonly count: number;
  readonly wait_max_ms: number;
  /** How much work may wait; left out: as much as comes. */
  readonly waiting_max?: number;
  /** Makes the error of work that has waited for longer, or would be too much. */
  readonly refusal: () => Error;
}

export class Slots {
  readonly #limits: SlotLimits;
  #free: number;
  /** Each takes a slot that has become free; the first one has waited longest. */
  readonly #waiting = new Set<() => void>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
    this.#free = limits.count;
  }

  get hasFree(): boolean {
    return this.#free > 0;
  }

  /** Nothing is being done, and nothing waits. */
  get isIdle(): boolean {
    return this.#free === this.#limits.count;
  }

  /** Does the work in a slot. Rejects as the work does, or with the refusal. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const leave = await this.take();
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Waits for a slot, and returns what gives it back. Rejects with the refusal when none became free in time, or too much waits. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn();
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      const [next] = this.#waiting;
      // The slot goes to the next one without becoming free.
      if (next) next();
      else this.#free += 1;
    };
  }

  async #turn(): Promise<void> {
    const { wait_max_ms, waiting_max = Infinity, refusal } = this.#limits;
    if (this.#waiting.size >= waiting_max) throw refusal();
    await new Promise<void>((resolve, reject) => {
      const take = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(take);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(take);
        reject(refusal());
      }, wait_max_ms);
      this.#waiting.add(take);
    });
  }
}

/** Slots of each key. Those of a key without work are forgotten. */
export class KeyedSlots {
  readonly #limits: SlotLimits;
  readonly #byKey = new Map<string, Slots>();

  /** `limits`: of one key. */
  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** As `Slots.take`, for this key. */
  async take(key: string): Promise<() => void> {
    const slots = this.#byKey.get(key) ?? new Slots(this.#limits);
    this.#byKey.set(key, slots);
    const isFree = slots.hasFree;
    const leave = await slots.take();
    // What a database in the same process answers takes no turn of the event loop: all that wait would run in one.
    if (!isFree) await turn();
    return () => {
      leave();
      if (slots.isIdle && this.#byKey.get(key) === slots) this.#byKey.delete(key);
    };
  }
}
