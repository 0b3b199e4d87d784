/** How long the history is kept: what a client has set, or else the configuration. Read each time, since replicas share it. */
import type { HistoryStore } from './history-store.ts';
import type { HistoryRetention, Retention, RetentionInEffect } from './retention.ts';

export class RetentionSetting implements HistoryRetention {
  readonly #store: Pick<HistoryStore, 'historyRetention' | 'setHistoryRetention'>;
  readonly #configured: Retention;

  constructor(store: Pick<HistoryStore, 'historyRetention' | 'setHistoryRetention'>, configured: Retention) {
    this.#store = store;
    this.#configured = configured;
  }

  async read(): Promise<RetentionInEffect> {
    const set = await this.#store.historyRetention();
    if (!set) return { retention: this.#configured, source: 'configuration' };
    return { retention: { ...set, kit_bytes_max: this.#within(set.kit_bytes_max) }, source: 'api' };
  }

  async set(retention: Retention): Promise<RetentionInEffect> {
    await this.#store.setHistoryRetention(retention);
    return this.read();
  }

  /** The size that is configured is what the disk has room for: a client may only lower it. */
  #within(bytes_max: number | undefined): number | undefined {
    const { kit_bytes_max } = this.#configured;
    if (bytes_max === undefined || kit_bytes_max === undefined) return bytes_max ?? kit_bytes_max;
    return Math.min(bytes_max, kit_bytes_max);
  }
}
