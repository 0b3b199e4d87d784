/** Draws lines over the previous ones, cut to the current size of the terminal. Pure. */

import { cut } from './width.ts';

interface Size {
  readonly columns?: number;
  readonly rows?: number;
}

const home = '\u001B[H';
const clear_line = '\u001B[K';
const clear_below = '\u001B[J';
export const hide_cursor = '\u001B[?25l';
export const show_cursor = '\u001B[?25h';
export const clear_screen = '\u001B[2J';

/** Returns one text for a single write, which does not flicker. */
export function drawn(lines: readonly string[], { columns, rows = Infinity }: Size): string {
  const shown =
    lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `... ${lines.length - rows + 1} more lines`];
  return home + shown.map((line) => cut(line, columns) + clear_line).join('\n') + clear_below;
}
