/** Sends the calls of a poll in one request, and skips for a while the ones that it refuses or lacks. */
import type { DriverLog } from '../../../src/driver/driver.ts';
import type { Limits } from '../limits.ts';
import type { Ubus } from './ubus.ts';
import { answerWords, type Answer, type Call, ubus_status } from './ubus-wire.ts';
import { texts } from '../texts.ts';

export interface Question extends Call {
  /** Consequence and remedy without it, for the log. */
  readonly without: string;
}

interface AskingParts {
  readonly ubus: Pick<Ubus, 'ask'>;
  readonly log: DriverLog;
  readonly radio: string;
  readonly limits: Pick<Limits, 'lacking_ms'>;
}

export class Asking {
  readonly #parts: AskingParts;
  /** By key of the question: the failed answer, and until when the call is skipped. */
  readonly #lacking = new Map<string, { readonly words: string; readonly until_ms: number }>();

  constructor(parts: AskingParts) {
    this.#parts = parts;
  }

  /** Bodies of the answered questions, by key. Rejects when the radio does not answer at all. */
  async ask<K extends string>(
    questions: Readonly<Partial<Record<K, Question>>>,
  ): Promise<ReadonlyMap<string, unknown>> {
    const now_ms = performance.now();
    const wanted = Object.entries<Question | undefined>(questions).flatMap(([key, question]) =>
      question && now_ms >= (this.#lacking.get(key)?.until_ms ?? 0) ? [{ key, question }] : [],
    );
    const answers = await this.#parts.ubus.ask(wanted.map(({ question }) => question));
    const bodies = new Map<string, unknown>();
    for (const [index, { key, question }] of wanted.entries()) {
      const answer = answers[index];
      if (answer?.kind === 'ok') {
        bodies.set(key, answer.body ?? {});
        this.#found(key, question);
      } else if (answer) {
        this.#lost(key, question, answer);
      }
    }
    return bodies;
  }

  #found(key: string, { object, method }: Question): void {
    if (!this.#lacking.delete(key)) return;
    this.#parts.log.info({ radio: this.#parts.radio, call: `${object} ${method}` }, texts.call_restored);
  }

  /** Logs each call and answer once, for any duration. */
  #lost(key: string, { object, method, without }: Question, answer: Answer): void {
    const { log, radio, limits } = this.#parts;
    const words = answerWords(answer);
    if (this.#lacking.get(key)?.words !== words) {
      log.warn({ radio, call: `${object} ${method}`, answer: words }, without);
    }
    this.#lacking.set(key, {
      words,
      until_ms: isLasting(answer) ? performance.now() + limits.lacking_ms : 0,
    });
  }
}

/** "No data", timeouts and internal errors of the radio are temporary. */
const lasting_codes: ReadonlySet<number> = new Set([
  ubus_status.invalid_command,
  ubus_status.invalid_argument,
  ubus_status.method_not_found,
  ubus_status.not_found,
  ubus_status.permission_denied,
  ubus_status.not_supported,
]);

function isLasting(answer: Answer): boolean {
  if (answer.kind === 'status') return lasting_codes.has(answer.code);
  return answer.kind === 'denied' || answer.kind === 'absent';
}
