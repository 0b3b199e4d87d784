/** Draws lines over the ones drawn before, cut to the size that the terminal has at that moment. Pure: lines in, text out. */

interface Size {
  readonly columns?: number;
  readonly rows?: number;
}

const home = '\u001B[H';
const clear_line = '\u001B[K';
const clear_below = '\u001B[J';
const plain_colour = '\u001B[0m';
export const hide_cursor = '\u001B[?25l';
export const show_cursor = '\u001B[?25h';
export const clear_screen = '\u001B[2J';

// oxlint-disable-next-line no-control-regex -- the colours that `painter` adds
const colour_or_char = /\u001B\[\d+m|[\s\S]/gu;

/** One text for one write: a terminal that is drawn at once does not flicker. */
export function drawn(lines: readonly string[], { columns = Infinity, rows = Infinity }: Size): string {
  const shown =
    lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `... ${lines.length - rows + 1} more lines`];
  return home + shown.map((line) => cut(line, columns) + clear_line).join('\n') + clear_below;
}

/** Colours take no room. */
function cut(line: string, columns: number): string {
  let width = 0;
  let text = '';
  for (const [token] of line.matchAll(colour_or_char)) {
    if (token.length === 1 || !token.startsWith('\u001B')) width += 1;
    if (width > columns) return `${text}${plain_colour}`;
    text += token;
  }
  return text;
}
