/**
 * Stores outcomes of deliveries, one transaction at a time: 64 receivers have 256 deliveries at once, and each outcome in a transaction of
 * its own would take every connection of the database.
 */
import { StorageUnavailable } from '../../errors.ts';
import type { Settled } from './settle.ts';
import type { Settlement, WebhookStore } from './webhook-store.ts';

/** Outcomes of one transaction. */
const settlements_max = 64;

interface Waiting {
  readonly settlement: Settlement;
  readonly resolve: (settled: Settled) => void;
  readonly reject: (error: unknown) => void;
}

export class Settling {
  readonly #store: Pick<WebhookStore, 'settleMessages'>;
  /** Of deliveries that have ended: as many at most as may run at once. */
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(store: Pick<WebhookStore, 'settleMessages'>) {
    this.#store = store;
  }

  /** Resolves when the outcome is stored, and returns whether the receiver was disabled by it. Rejects as the store does. */
  async settle(settlement: Settlement): Promise<Settled> {
    const { promise, resolve, reject } = Promise.withResolvers<Settled>();
    this.#waiting.push({ settlement, resolve, reject });
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) await this.#settleAll(this.#waiting.splice(0, settlements_max));
    this.#isRunning = false;
  }

  /** One outcome that the database refuses for good keeps no other one from being stored. */
  async #settleAll(some: readonly Waiting[]): Promise<void> {
    try {
      const settled = await this.#store.settleMessages(some.map(({ settlement }) => settlement));
      for (const [at, { resolve }] of some.entries()) resolve(settled[at] ?? { disabled: false });
    } catch (error) {
      const isRefused = !(error instanceof StorageUnavailable) && some.length > 1;
      if (isRefused) for (const each of some) await this.#settleAll([each]);
      else for (const { reject } of some) reject(error);
    }
  }
}
