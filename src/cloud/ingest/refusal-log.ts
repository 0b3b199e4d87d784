/** Logs what is refused or ignored: a line for each kind at once, and one with the count of those that follow within ten minutes. */
import { every } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import { kindOf, type News } from '../store/losses.ts';

const window_ms = 600_000;
const check_ms = 60_000;
/** Kinds that are remembered; further ones are logged each time, and suppressed by the log itself. */
const kinds_max = 1_000;

interface Kind {
  readonly ends_ms: number;
  /** Writes a line about the newest of them. */
  write: (repeated: number) => void;
  repeated: number;
}

export class RefusalLog {
  readonly #log: Pick<ServiceLog, 'warn'>;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Kind>();

  /** `now`: monotonic. */
  constructor(log: Pick<ServiceLog, 'warn'>, now: () => number, signal: AbortSignal) {
    this.#log = log;
    this.#now = now;
    every(check_ms, signal, () => this.end());
    signal.addEventListener('abort', () => this.end(Number.POSITIVE_INFINITY), { once: true });
  }

  note(sentence: string, { kit_id, count, ...about }: News & { readonly kit_id: string }): void {
    const { what: channel, reason } = about;
    const facts = { kit_id, channel, ...(reason !== '' && { reason }) };
    const write = (repeated: number): void =>
      this.#log.warn({ ...facts, ...(repeated > 0 && { repeated }) }, sentence);
    const kind = `${kit_id} ${sentence} ${kindOf(about)}`;
    const known = this.#kinds.get(kind);
    if (known) {
      known.repeated += count;
      known.write = write;
      return;
    }
    write(count - 1);
    if (this.#kinds.size >= kinds_max) return;
    this.#kinds.set(kind, { ends_ms: this.#now() + window_ms, write, repeated: 0 });
  }

  /** Ends the windows that are over. */
  end(at_ms = this.#now()): void {
    for (const [kind, { ends_ms, repeated, write }] of this.#kinds) {
      if (ends_ms > at_ms) continue;
      this.#kinds.delete(kind);
      if (repeated > 0) write(repeated);
    }
  }
}
