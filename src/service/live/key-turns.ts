/**
 * Turns of the keys at expensive work: of one key, one thing is done at a time, however many sockets it has. The work of different
 * keys goes on side by side, and between two things everybody else has a turn of the event loop.
 */
import { turn } from '../../platform/time.ts';

/** Does the work when its turn has come. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export class KeyTurns {
  /** The end of what was asked for last; those before it wait for one another. */
  readonly #last = new Map<string, Promise<void>>();

  /** Does the work after what was asked for before in the name of this key. Rejects as the work does. */
  async take<T>(key_id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key_id);
    const over = Promise.withResolvers<void>();
    this.#last.set(key_id, over.promise);
    await before;
    try {
      return await work();
    } finally {
      await turn();
      over.resolve();
      if (this.#last.get(key_id) === over.promise) this.#last.delete(key_id);
    }
  }
}
