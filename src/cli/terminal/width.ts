/** The columns of a terminal that a text takes, and texts cut, padded or folded to them. Colours take none. Pure. */
import { stripVTControlCharacters } from 'node:util';

const escape = '\u001B';
/** The output of `styleText`. The group keeps the codes when a text is split by it. */
const colours = new RegExp(`(${escape}\\[\\d+m)`, 'u');
const [colour_end, bold_ends] = [`${escape}[39m`, `${escape}[22m`];
const ends: ReadonlySet<string> = new Set([colour_end, bold_ends]);
const ascii = /^[\u0020-\u007E]*$/u;
const no_column = /^[[\p{Mn}\p{Me}\p{Cf}]--[\uFE0F]]$/v;
/** Two columns on all or some terminals (Unicode Standard Annex 11). Half-width forms belong to the same scripts. */
const two_columns =
  /^[[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Emoji_Presentation}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]--[\uFF61-\uFFDC]]$/v;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const ellipsis = '…';

export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const char of stripVTControlCharacters(text))
    width += no_column.test(char) ? 0 : two_columns.test(char) ? 2 : 1;
  return width;
}

/** Returns the text if it fits, else its beginning and an ellipsis. `columns` undefined: no limit. */
export function cut(text: string, columns: number | undefined): string {
  if (columns === undefined || widthOf(text) <= columns) return text;
  let left = columns - 1;
  let shown = '';
  let colour_ends = '';
  for (const [at, part] of text.split(colours).entries()) {
    if (at % 2 === 1) {
      shown += part;
      colour_ends = part.endsWith('[1m') ? bold_ends : ends.has(part) ? '' : colour_end;
      continue;
    }
    const begin = beginningOf(part, left);
    if (begin.length < part.length) return shown + begin + ellipsis + colour_ends;
    shown += part;
    left -= widthOf(part);
  }
  return shown;
}

/** Returns as many whole characters, with their combining marks, as fit. */
function beginningOf(text: string, columns: number): string {
  let left = columns;
  let end = 0;
  for (const { segment } of graphemes.segment(text)) {
    left -= widthOf(segment);
    if (left < 0) break;
    end += segment.length;
  }
  return text.slice(0, end);
}

/** Exactly so many columns: cut, or filled with spaces. */
export function padTo(text: string, columns: number): string {
  const fitting = cut(text, columns);
  return fitting + ' '.repeat(Math.max(0, columns - widthOf(fitting)));
}

/**
 * Wraps a sentence at spaces; lines after the first begin with `indent` spaces. A word longer than a line has its own line. `columns` undefined: one line.
 */
export function fold(text: string, columns: number | undefined, indent: number): readonly string[] {
  if (columns === undefined || widthOf(text) <= columns) return [text];
  const lines: string[] = [];
  let line = '';
  // Spaces between words are kept, since they align the beginning.
  for (const [gap, word] of gapsAndWords(text)) {
    const longer = line + gap + word;
    const isBlank = line.trim() === '';
    if (isBlank || widthOf(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = ' '.repeat(indent) + word;
    }
  }
  return [...lines, line];
}

function gapsAndWords(text: string): readonly (readonly [string, string])[] {
  return Array.from(text.matchAll(/( *)([^ ]+)/gu), ([, gap = '', word = '']) => [gap, word] as const);
}
