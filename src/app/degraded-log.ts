/** Logs each reason for a degraded kit when it begins and when it ends. */
import { texts } from './texts.ts';

export const look_every_ms = 5_000;
/** What passes sooner is logged by its part, if at all. */
export const begins_after_ms = 10_000;
/** What comes back sooner has not ended. */
export const ends_after_ms = 60_000;

interface Reason {
  /** As it was first read. */
  readonly sentence: string;
  readonly began_ms: number;
  last_ms: number;
  is_logged: boolean;
}

interface Log {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

export class DegradedLog {
  readonly #now: () => number;
  readonly #log: Log;
  readonly #reasons = new Map<string, Reason>();

  constructor(now: () => number, log: Log) {
    this.#now = now;
    this.#log = log;
  }

  /** To be called every `look_every_ms` with all sentences. */
  look(sentences: readonly string[]): void {
    const now_ms = this.#now();
    for (const sentence of sentences) this.#seen(sentence, now_ms);
    for (const [key, reason] of this.#reasons) {
      const { is_logged, began_ms, last_ms } = reason;
      if (last_ms === now_ms && !is_logged && now_ms - began_ms >= begins_after_ms) {
        reason.is_logged = true;
        this.#log.warn({ text: reason.sentence }, texts.degraded_began);
      }
      if (now_ms - last_ms < (is_logged ? ends_after_ms : look_every_ms)) continue;
      this.#reasons.delete(key);
      const lasted_s = Math.round((last_ms - began_ms) / 1_000);
      if (is_logged) this.#log.info({ text: reason.sentence, lasted_s }, texts.degraded_ended);
    }
  }

  #seen(sentence: string, now_ms: number): void {
    // A figure that changes (messages, percents, gigabytes) makes no other reason of it.
    const key = sentence.replaceAll(/\d+(?:[.,]\d+)*/gu, '#');
    const known = this.#reasons.get(key);
    if (known) known.last_ms = now_ms;
    else this.#reasons.set(key, { sentence, began_ms: now_ms, last_ms: now_ms, is_logged: false });
  }
}
