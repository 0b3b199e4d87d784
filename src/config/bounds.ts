/**
 * Bounds of a configuration before it is parsed. The parser of YAML calls itself for each level of nesting and compares each key with
 * all others: 900 kB of "[" took 8 s and 1.5 GB.
 */
import { isUtf8 } from 'node:buffer';
import { Lexer, Parser } from 'yaml';
import { ConfigInvalid } from '../errors.ts';
import { texts } from './texts.ts';

/** A thousand devices take less. A larger file is a mistake: another one was named. */
export const file_bytes_max = 262_144;
/** Of lists, groups and the values in them; the deepest key stands at 8. */
const depth_max = 32;
/** Words, signs, spaces and line ends: some 5,000 lines. */
const tokens_max = 40_000;

/** The text of the bytes. Throws `ConfigInvalid` unless they are UTF-8 text, also with a byte order mark. */
export function decodeConfig(file: string, bytes: Buffer): string {
  if (isUtf16(bytes)) throw new ConfigInvalid([`${file}:1:1: ${texts.utf16}`]);
  const text = bytes.toString('utf8');
  if (!isUtf8(bytes)) throw faultAt(file, text, Math.max(0, text.indexOf('\uFFFD')), texts.not_utf8);
  return text;
}

/** By its mark, or by the zero beside the first letter. */
function isUtf16([first, second]: Buffer): boolean {
  const isMark = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return isMark || first === 0 || second === 0;
}

/** Throws `ConfigInvalid` with the first place where `text` is no configuration by its size or its characters. */
export function checkBounds(file: string, text: string): void {
  const control = text.search(no_text);
  if (control !== -1) {
    throw faultAt(file, text, control, texts.control_character(text.codePointAt(control) ?? 0));
  }
  const parser = new Parser();
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > tokens_max) throw faultAt(file, text, parser.offset, texts.too_much(tokens_max));
    // What the parser yields is made again when the bounds are known to hold.
    Array.from(parser.next(lexeme));
    if (parser.stack.length > depth_max) throw faultAt(file, text, parser.offset, texts.too_deep(depth_max));
  }
}

/** What YAML 1.2 does not allow in a file (section 5.1, c-printable), but for halves of surrogate pairs, which UTF-8 cannot hold. */
const no_text = /[^\t\n\r\x20-\x7E\x85\u{A0}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u;

function faultAt(file: string, text: string, offset: number, sentence: string): ConfigInvalid {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  const col = offset - before.lastIndexOf('\n');
  return new ConfigInvalid([`${file}:${line}:${col}: ${sentence}`]);
}
