/** Sends messages again that the broker acknowledged and the cloud did not: in time, and at once when the broker has forgotten us. */
import { type Due, Resending } from './resending.ts';
import type { Dispatch } from './dispatch.ts';
import type { Committer } from './disk/committer.ts';
import type { StoreClient } from './disk/store-client.ts';

interface ResenderOptions {
  readonly client: Pick<StoreClient, 'resendUnconfirmed'>;
  readonly committer: Pick<Committer, 'settled'>;
  readonly dispatch: () => Pick<Dispatch, 'is_connected' | 'touchAll'>;
  readonly failed: (error: unknown) => void;
  /** Monotonic time. */
  readonly now: () => number;
}

export class Resender {
  readonly #options: ResenderOptions;
  readonly #resending: Resending;

  constructor(options: ResenderOptions) {
    this.#options = options;
    this.#resending = new Resending(options.now);
  }

  /** The cloud acknowledged something; `released`: messages of which it was not known. */
  acked(released: number): void {
    this.#resending.acked(released);
  }

  /** To be called now and then. */
  async tick(): Promise<void> {
    const due = this.#options.dispatch().is_connected ? this.#resending.begin() : undefined;
    if (due) this.#resending.resent(await this.#free(due));
  }

  /** The broker has forgotten what it acknowledged, and perhaps also what the cloud has not read yet. */
  async sessionLost(): Promise<void> {
    // What the broker acknowledged a moment ago is unconfirmed with the next commit.
    await this.#options.committer.settled(0).catch(() => undefined);
    await this.#free({ older_than_ms: 0, lazy: true });
  }

  async #free(due: Due): Promise<number> {
    const { client, dispatch, failed } = this.#options;
    try {
      const rows = await client.resendUnconfirmed(due);
      if (rows > 0) dispatch().touchAll();
      return rows;
    } catch (error) {
      failed(error);
      return 0;
    }
  }
}
