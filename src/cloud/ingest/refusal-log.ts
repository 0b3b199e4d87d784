/** Logs what is refused or ignored: a line for each kind at once, and one with the count of those that follow within ten minutes. */
import { Repeats } from '../../platform/log/repeats.ts';
import type { ServiceLog } from '../service-log.ts';
import { kindOf, type News } from '../stored/losses.ts';

const window_ms = 600_000;

/** The counts are logged at the end of the window, or when the signal aborts. */
export class RefusalLog {
  readonly #log: Pick<ServiceLog, 'warn'>;
  readonly #repeats = new Repeats(window_ms);

  constructor(log: Pick<ServiceLog, 'warn'>, signal: AbortSignal) {
    this.#log = log;
    signal.addEventListener('abort', () => this.#repeats.flush(), { once: true });
  }

  note(sentence: string, { kit_id, count, ...about }: News & { readonly kit_id: string }): void {
    const { what: channel, reason } = about;
    const facts = { kit_id, channel, ...(reason !== '' && { reason }) };
    const summarize = (repeated: number): void =>
      this.#log.warn({ ...facts, ...(repeated > 0 && { repeated }) }, sentence);
    const text = `${kit_id} ${sentence} ${kindOf(about)}`;
    if (this.#repeats.admits([{ text, max: 1, count, summarize }])) summarize(count - 1);
  }
}
