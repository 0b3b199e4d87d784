/** Keeps the history in order in the background: divides what has landed, makes figures, deletes what is old. */
import { messageOf } from '../../platform/errors.ts';
import { sleep, turn } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import type { HistoryStore } from './history-store.ts';
import type { HistoryRetention, Retention } from './retention.ts';
import { texts } from '../texts.ts';

export interface HistoryOptions {
  /** Unless a client has set another one. */
  readonly retention: Retention;
  /** Between two rounds. */
  readonly every_ms: number;
  /** Divide everything in each round: where the disk should be written rarely, and what has landed waits in memory. */
  readonly divides_all: boolean;
  /** Messages that may wait in memory while the disk refuses; left out: they wait in the database. */
  readonly landed_max?: number | undefined;
}

/** A server with many kits: whatever waits is divided soon. */
export const server_round_ms = 5_000;
/** A gateway: one transaction in ten minutes. */
export const gateway_round_ms = 600_000;
/** What a gateway holds in memory, 100 bytes each. */
export const gateway_landed_max = 100_000;

const trim_every_ms = 3_600_000;
/** After this time without a word of the replica that keeps the history in order, another one does. */
const lease_ms = 60_000;
const renew_every_ms = 10_000;

interface KeeperParts {
  readonly store: Pick<
    HistoryStore,
    'leadHistory' | 'compactHistory' | 'rollUpHistory' | 'trimHistory' | 'limitLanded'
  >;
  readonly retention: Pick<HistoryRetention, 'read'>;
  readonly log: ServiceLog;
  readonly now: () => number;
}

export class HistoryKeeper {
  readonly #parts: KeeperParts;
  readonly #options: HistoryOptions;
  #trimmed_ms = -Infinity;
  #isFailing = false;
  /** When the lease was last given to this process. */
  #led_ms = -Infinity;

  constructor(parts: KeeperParts, options: HistoryOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Works until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.every_ms, signal);
      if (!signal.aborted) await this.#round(signal);
    }
  }

  /** Divides what is left, where it would be lost with the process. */
  async finish(): Promise<void> {
    if (!this.#options.divides_all) return;
    await this.#attempt(async () => {
      while ((await this.#parts.store.compactHistory(this.#parts.now(), true)) > 0);
    });
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { store, now } = this.#parts;
    const { divides_all } = this.#options;
    const goesOn = async (): Promise<boolean> => !signal.aborted && (await this.#leads());
    await this.#attempt(async () => {
      if (!(await goesOn())) return;
      // Each call is a short transaction: the others have their turn between them.
      while ((await goesOn()) && (await store.compactHistory(now(), divides_all)) > 0) await turn();
      while ((await goesOn()) && (await store.rollUpHistory(now()))) await turn();
      if (performance.now() - this.#trimmed_ms < trim_every_ms || !(await goesOn())) return;
      const { retention } = await this.#parts.retention.read();
      while ((await goesOn()) && (await store.trimHistory(retention, now())) > 0) await turn();
      this.#trimmed_ms = performance.now();
    });
  }

  /** Two replicas that work at the same time do no harm, and one of them works in vain. */
  async #leads(): Promise<boolean> {
    if (performance.now() - this.#led_ms < renew_every_ms) return true;
    const isLeader = await this.#parts.store.leadHistory(lease_ms);
    this.#led_ms = isLeader ? performance.now() : -Infinity;
    return isLeader;
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    const { store, log } = this.#parts;
    const { landed_max } = this.#options;
    try {
      await work();
      if (this.#isFailing) log.info({}, texts.log_history_restored);
      this.#isFailing = false;
    } catch (error) {
      const reason = messageOf(error);
      if (!this.#isFailing) log.error({ reason }, texts.log_history_failed);
      this.#isFailing = true;
      const dropped = landed_max === undefined ? 0 : await store.limitLanded(landed_max).catch(() => 0);
      if (dropped > 0) log.error({ reason, messages: dropped }, texts.log_history_dropped);
    }
  }
}
