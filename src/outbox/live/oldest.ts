/** The age of the oldest row on disk: requested periodically, since it has to be read. */
import { every } from '../../platform/time.ts';
import type { StoreClient } from './disk/store-client.ts';

const look_every_ms = 10_000;

export class Oldest {
  readonly #client: Pick<StoreClient, 'inspect'>;
  readonly #failed: (error: unknown) => void;
  #ms: number | null = null;
  #is_looking = false;

  constructor(client: Pick<StoreClient, 'inspect'>, signal: AbortSignal, failed: (error: unknown) => void) {
    this.#client = client;
    this.#failed = failed;
    every(look_every_ms, signal, () => void this.#look());
    void this.#look();
  }

  /** When it was observed, as known some seconds ago; null when there is none. */
  get ms(): number | null {
    return this.#ms;
  }

  /** One look at a time: a thread that hangs must not find a queue of them. */
  async #look(): Promise<void> {
    if (this.#is_looking) return;
    this.#is_looking = true;
    try {
      const { lanes: found } = await this.#client.inspect();
      const times = Object.values(found).flatMap(({ oldest_ms }) => oldest_ms ?? []);
      this.#ms = times.length > 0 ? Math.min(...times) : null;
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#is_looking = false;
    }
  }
}
