/** Finds that another client uses the kit's id: the broker then ends each of the two sessions for the other one. */
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

/** DISCONNECT "session taken over" of MQTT 5. */
const session_taken_over = 0x8e;
/** MQTT 3.1.1 has no such code, and mosquitto 2.0.11 closes without it: so many connections that the broker ended soon after they began, within so long. */
const short_ms = 30_000;
const short_ends = 4;
const within_ms = 180_000;

export interface EndOfSession {
  readonly code: number | undefined;
  readonly held_ms: number;
  /** By the broker, in order: a link that breaks leaves a reset or silence. */
  readonly without_a_word: boolean;
}

export class Takeovers {
  readonly #now: () => number;
  readonly #problems: Pick<Problems, 'note'>;
  #ends_ms: readonly number[] = [];

  constructor(now: () => number, problems: Pick<Problems, 'note'>) {
    this.#now = now;
    this.#problems = problems;
  }

  ended({ code, held_ms, without_a_word }: EndOfSession): void {
    if (code === session_taken_over) {
      this.#problems.note('another_client', {
        sentence:
          'another client uses this kit_id at the broker: both keep losing the connection; find it and stop it, or give it its own kit_id',
        line: texts.another_client,
        facts: { code },
        lasts: 'for_a_while',
      });
      return;
    }
    if (!without_a_word || held_ms > short_ms) return;
    const now_ms = this.#now();
    this.#ends_ms = [...this.#ends_ms, now_ms].filter((ms) => now_ms - ms < within_ms).slice(-short_ends);
    if (this.#ends_ms.length < short_ends) return;
    this.#problems.note('another_client', {
      sentence:
        'broker ends the connection soon after each connect: perhaps another client uses this kit_id, or a message is forbidden; read the log of the broker',
      line: texts.short_connections,
      facts: { connections: short_ends },
      lasts: 'for_a_while',
    });
  }
}
