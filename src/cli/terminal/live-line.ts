/** A progress line at the bottom of a terminal, redrawn in place. Prints nothing without a terminal. */
import { columnsOf, type Output } from './shell.ts';
import { cut } from './width.ts';

const to_start_and_clear = '\r\u001B[K';

export class LiveLine {
  readonly #out: Output;
  #shown = '';

  constructor(out: Output) {
    this.#out = out;
  }

  /** Replaces the line; an empty text removes it. */
  show(text: string): void {
    if (this.#out.isTTY !== true || text === this.#shown) return;
    this.#out.write(to_start_and_clear + this.#fitting(text));
    this.#shown = text;
  }

  /** Writes lines above it, to any stream of the same terminal. */
  above(write: () => void): void {
    if (this.#shown !== '') this.#out.write(to_start_and_clear);
    write();
    if (this.#shown !== '') this.#out.write(this.#fitting(this.#shown));
  }

  /** The size is read each time: the window may have changed. */
  #fitting(text: string): string {
    return cut(text, columnsOf(this.#out));
  }
}
