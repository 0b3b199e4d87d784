/** What works and should not stay as it is: logged when it begins and ends, and part of /healthz and /metrics while it lasts. */
import type { ServiceLog } from './service-log.ts';
import { texts } from './texts.ts';

export const attention_topics = ['replication', 'subscription'] as const;
export type AttentionTopic = (typeof attention_topics)[number];

export class Attention {
  readonly #log: ServiceLog;
  readonly #open = new Map<AttentionTopic, string>();

  constructor(log: ServiceLog) {
    this.#log = log;
  }

  /** `sentence`: the fault and its remedy; undefined: there is none. */
  set(about: AttentionTopic, sentence: string | undefined): void {
    const before = this.#open.get(about);
    if (before === sentence) return;
    if (sentence === undefined) {
      this.#open.delete(about);
      this.#log.info({ about, reason: before }, texts.log_attention_over);
    } else {
      this.#open.set(about, sentence);
      this.#log.warn({ about, reason: sentence }, texts.log_attention);
    }
  }

  get sentences(): readonly string[] {
    return [...this.#open.values()];
  }

  get topics(): readonly AttentionTopic[] {
    return [...this.#open.keys()];
  }
}
