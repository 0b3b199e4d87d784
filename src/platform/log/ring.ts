/** The last lines of the log in memory, for a support bundle: also where no journal keeps them. */

import { texts } from '../texts.ts';

const lines_max = 2_000;
const chars_max = 500_000;
const line_chars_max = 4_000;

export class LogRing {
  readonly #lines: string[] = [];
  #chars = 0;
  #left_out = 0;

  push(line: string): void {
    const kept = line.trimEnd().slice(0, line_chars_max);
    this.#lines.push(kept);
    this.#chars += kept.length;
    while (this.#lines.length > lines_max || this.#chars > chars_max) {
      this.#chars -= this.#lines.shift()?.length ?? 0;
      this.#left_out += 1;
    }
  }

  /** Oldest first; the first one tells how many lines before it are gone. */
  lines(): readonly string[] {
    if (this.#left_out === 0) return [...this.#lines];
    const gone = { level: 'info', msg: texts.lines_left_out, lines: this.#left_out };
    return [JSON.stringify(gone), ...this.#lines];
  }
}
