/** The last lines of the log in memory, for a support bundle: also where no journal keeps them. */

const lines_max = 2_000;
const chars_max = 500_000;
const line_chars_max = 4_000;

export class LogRing {
  readonly #lines: string[] = [];
  #chars = 0;

  push(line: string): void {
    const kept = line.trimEnd().slice(0, line_chars_max);
    this.#lines.push(kept);
    this.#chars += kept.length;
    while (this.#lines.length > lines_max || this.#chars > chars_max) {
      this.#chars -= this.#lines.shift()?.length ?? 0;
    }
  }

  /** Oldest first. */
  lines(): readonly string[] {
    return [...this.#lines];
  }
}
