/** What is wrong between kit and broker now: logged once each, and shown as `degraded` until it is over. */

/** A thing that shows only at moments, as a takeover, counts as present for so long. */
const shown_ms = 600_000;

export type ProblemKind =
  | 'another_client'
  | 'too_large'
  | 'receive_maximum'
  | 'retain'
  | 'qos'
  | 'subscription'
  | 'presence'
  | 'undelivered'
  | 'large_packets';

export interface ProblemsLog {
  warn(facts: object, sentence: string): void;
}

interface Problem {
  readonly sentence: string;
  readonly until_ms: number;
}

export class Problems {
  readonly #now: () => number;
  readonly #log: ProblemsLog;
  readonly #present = new Map<ProblemKind, Problem>();

  constructor(now: () => number, log: ProblemsLog) {
    this.#now = now;
    this.#log = log;
  }

  /**
   * Notes a problem. `line` goes into the log when the problem is new; `sentence`, what is wrong and what to do, into the
   * state of the kit.
   */
  note(kind: ProblemKind, { sentence, line, facts, lasts }: ProblemNote): void {
    const known = this.#present.get(kind);
    const isNew = !known || known.until_ms < this.#now() || known.sentence !== sentence;
    this.#present.set(kind, {
      sentence,
      until_ms: lasts === 'until_cleared' ? Number.POSITIVE_INFINITY : this.#now() + shown_ms,
    });
    if (isNew) this.#log.warn(facts, line);
  }

  clear(...kinds: readonly ProblemKind[]): void {
    for (const kind of kinds) this.#present.delete(kind);
  }

  sentences(): readonly string[] {
    return [...this.#present.values()]
      .filter(({ until_ms }) => until_ms >= this.#now())
      .map(({ sentence }) => sentence);
  }
}

export interface ProblemNote {
  readonly sentence: string;
  readonly line: string;
  readonly facts: object;
  readonly lasts: 'until_cleared' | 'for_a_while';
}
