/** The configuration file as text: its YAML, where each key stands, and the list of faults that are found in it. */
import { isUtf8 } from 'node:buffer';
import { dirname } from 'node:path';
import {
  type Document,
  LineCounter,
  type Node,
  type YAMLMap,
  type YAMLParseError,
  isMap,
  isNode,
  isScalar,
  parseDocument,
  visit,
} from 'yaml';
import { ConfigInvalid, messageOf } from '../../platform/errors.ts';
import { readBytesUpTo } from '../../platform/bounded-file.ts';
import { texts as platform_texts } from '../../platform/texts.ts';
import { texts } from './texts.ts';

export type KeyPath = readonly PropertyKey[];

export interface Source {
  /** As it was named, for the technician. */
  readonly file: string;
  readonly value: unknown;
  /** `file:line:col` of a key, or of the closest that is there. */
  readonly place: (path: KeyPath) => { readonly line: number; readonly col: number };
}

/** Faults that are reported at once: more are not read, and each costs the search for its line. */
const faults_max = 50;

/** The text of the file. Throws `ConfigInvalid` when it cannot be read or is no text. */
export async function readSource(file: string): Promise<string> {
  const bytes = await readBytesUpTo(file, file_bytes_max).catch((error: unknown) => {
    throw new ConfigInvalid([`${file}: ${platform_texts.unreadable(error)}`]);
  });
  return decodeConfig(file, bytes);
}

/** Parses YAML 1.2. Throws `ConfigInvalid` with the faults of its syntax. */
export function parseSource(file: string, text: string): Source {
  checkCharacters(file, text);
  const lines = new LineCounter();
  // Its check compares each key with all others of its group; `keyFaults` does it.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0) {
    const first = document.errors.slice(0, faults_max).map((error) => syntaxFault(file, lines, error));
    throw new ConfigInvalid([...first, ...furtherFaults(file, document.errors.length)]);
  }
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) {
    throw new ConfigInvalid([`${file}: ${texts.file_empty}`]);
  }
  if (!isMap(document.contents)) {
    throw new ConfigInvalid([`${file}:1:1: ${texts.no_keys}`]);
  }
  const key_faults = keyFaults(document.contents);
  if (key_faults.length > 0) {
    const first = key_faults.slice(0, faults_max).map(({ offset, sentence }) => {
      const { line, col } = lines.linePos(offset);
      return `${file}:${line}:${col}: ${sentence}`;
    });
    throw new ConfigInvalid([...first, ...furtherFaults(file, key_faults.length)]);
  }
  return {
    file,
    value: plainValue(file, document),
    place: (path) => lines.linePos(offsetOf(document.contents, path)),
  };
}

function furtherFaults(file: string, count: number): readonly string[] {
  return count > faults_max ? [`${file}: ${texts.further_faults(count - faults_max)}`] : [];
}

/** Keys that are no text, of which JavaScript would make some, and keys that their group has already. */
function keyFaults(contents: YAMLMap): readonly { readonly offset: number; readonly sentence: string }[] {
  const faults: { offset: number; sentence: string }[] = [];
  visit(contents, {
    Map(_, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        const offset = startOf(key) ?? 0;
        if (!isScalar(key)) faults.push({ offset, sentence: texts.key_no_word });
        else if (seen.has(keyText(key))) faults.push({ offset, sentence: texts.duplicate_key });
        seen.add(keyText(key));
      }
    },
  });
  return faults.sort((a, b) => a.offset - b.offset);
}

/** Aliases that refer to each other without end are the one thing that fails only here. */
function plainValue(file: string, document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new ConfigInvalid([`${file}: ${texts.aliases(lowerFirst(messageOf(error)))}`]);
  }
}

function syntaxFault(file: string, lines: LineCounter, error: YAMLParseError): string {
  const { line, col } = lines.linePos(error.pos[0]);
  return `${file}:${line}:${col}: ${syntaxSentence(error)}`;
}

function syntaxSentence({ code, message }: YAMLParseError): string {
  return syntaxSentences[code] ?? texts.not_yaml(lowerFirst(message));
}

const syntaxSentences: Readonly<Partial<Record<YAMLParseError['code'], string>>> = {
  TAB_AS_INDENT: texts.tab_indents,
  MULTIPLE_DOCS: texts.second_document,
  BAD_INDENT: texts.bad_indent,
  MISSING_CHAR: texts.not_closed,
};

function lowerFirst(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');
}

/** The offset of the key at `path`; of the deepest part of the path that is there when it is missing. */
function offsetOf(contents: Node | null, path: KeyPath): number {
  let node: unknown = contents;
  let offset = startOf(contents);
  for (const step of path) {
    const next = isMap(node) ? node.items.find((pair) => keyText(pair.key) === String(step)) : undefined;
    if (next) {
      offset = startOf(next.key) ?? offset;
      node = next.value;
      continue;
    }
    const item = isNode(node) && 'items' in node && !isMap(node) ? node.items[Number(step)] : undefined;
    if (item === undefined) break;
    offset = startOf(item) ?? offset;
    node = item;
  }
  return offset ?? 0;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

/** Collects faults, so that the technician sees all of them at once, in the order of the lines. */
export interface FaultList {
  /** A sentence that takes time to write may be a function: it is called for what is reported. */
  readonly add: (path: KeyPath, sentence: string | (() => string)) => void;
  /** `file:line:col key.path: sentence`, in the order of the file. */
  readonly lines: () => readonly string[];
}

/** A file that is being read, and what is found in it so far: nothing of it is used once there is a fault. */
export interface Reading {
  readonly file: string;
  /** Where names of files in it begin that are not absolute. */
  readonly dir: string;
  readonly faults: FaultList;
  /** Sentences on what works and should not stay as it is. */
  readonly warnings: string[];
  /** `$CREDENTIALS_DIRECTORY` of systemd. */
  readonly credentials_dir?: string | undefined;
}

export function reading(source: Source, credentials_dir?: string): Reading {
  const { file } = source;
  return { file, dir: dirname(file), faults: faultList(source), warnings: [], credentials_dir };
}

function faultList(source: Source): FaultList {
  const faults: { line: number; col: number; text: string }[] = [];
  let count = 0;
  return {
    add: (path, sentence) => {
      count += 1;
      if (count > faults_max) return;
      const { line, col } = source.place(path);
      const words = typeof sentence === 'string' ? sentence : sentence();
      const text = `${source.file}:${line}:${col} ${shortened(pathText(path))}: ${shortened(words)}`;
      faults.push({ line, col, text });
    },
    lines: () => [
      ...faults.sort((a, b) => a.line - b.line || a.col - b.col).map(({ text }) => text),
      ...furtherFaults(source.file, count),
    ],
  };
}

/** Longer than any list of known keys. What is longer holds a word of the file, and the remedy stands at the end. */
const sentence_chars_max = 1_000;

function shortened(text: string): string {
  if (text.length <= sentence_chars_max) return text;
  const half = sentence_chars_max / 2;
  return `${text.slice(0, half)} ... ${text.slice(-half)}`;
}

/** `drivers[2].options.port` */
function pathText(path: KeyPath): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${String(step)}`))
    .join('');
}

/** A thousand devices take less. A larger file is a mistake: another one was named. */
export const file_bytes_max = 262_144;
/** The text of the bytes. Throws `ConfigInvalid` unless they are UTF-8 text, also with a byte order mark. */
function decodeConfig(file: string, bytes: Buffer): string {
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

/** Throws `ConfigInvalid` with the first place where `text` is no configuration by its characters. */
function checkCharacters(file: string, text: string): void {
  const control = text.search(no_text);
  if (control !== -1) {
    throw faultAt(file, text, control, texts.control_character(text.codePointAt(control) ?? 0));
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
