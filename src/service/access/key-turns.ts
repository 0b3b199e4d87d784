/**
 * Limits how many pieces of work of one key run at a time, whatever the number of its connections. Different keys do not wait for each
 * other, and the event loop turns between two pieces of work.
 */
import { turn } from '../../platform/time.ts';

/** Does the work when its turn has come. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

interface Places {
  running: number;
  /** Each begins one piece of work, the first one has waited longest. */
  readonly waiting: (() => void)[];
}

export class KeyTurns {
  readonly #at_once_max: number;
  readonly #byKey = new Map<string, Places>();

  /** `at_once_max`: pieces of work of one key that are done at a time. */
  constructor(at_once_max: number) {
    this.#at_once_max = at_once_max;
  }

  /** Does the work after what was asked for before in the name of this key. Rejects as the work does. */
  async take<T>(key_id: string, work: () => Promise<T>): Promise<T> {
    const places = this.#byKey.get(key_id) ?? { running: 0, waiting: [] };
    this.#byKey.set(key_id, places);
    if (places.running < this.#at_once_max) places.running += 1;
    else await new Promise<void>((resolve) => places.waiting.push(resolve));
    try {
      return await work();
    } finally {
      void this.#leave(key_id, places);
    }
  }

  /** The place goes to the next one without becoming free. */
  async #leave(key_id: string, places: Places): Promise<void> {
    await turn();
    const next = places.waiting.shift();
    if (next) next();
    else places.running -= 1;
    if (places.running === 0) this.#byKey.delete(key_id);
  }
}
