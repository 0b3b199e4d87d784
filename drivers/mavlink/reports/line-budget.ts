/** Limits log lines by their subject: a device that sends ever new texts must not fill the journal. */

const window_ms = 60_000;
/** Lines of one subject in a window. */
const subject_lines_max = 20;
/** Lines of all subjects in a window. */
const lines_max = 120;
const subjects_max = 256;

export class LineBudget {
  readonly #subjects = new Map<string, number>();
  #began_ms = Number.NEGATIVE_INFINITY;
  #lines = 0;

  /** Decides whether the line may be written; `last`: the last one of its subject in this window. */
  reserve(subject: string, now_ms: number): 'write' | 'last' | 'hold' {
    if (now_ms - this.#began_ms >= window_ms) {
      this.#began_ms = now_ms;
      this.#lines = 0;
      this.#subjects.clear();
    }
    const count = (this.#subjects.get(subject) ?? 0) + 1;
    const isNew = count === 1 && this.#subjects.size >= subjects_max;
    if (isNew || this.#lines >= lines_max || count > subject_lines_max) return 'hold';
    this.#subjects.set(subject, count);
    this.#lines += 1;
    return count === subject_lines_max || this.#lines === lines_max ? 'last' : 'write';
  }
}
