/** The configuration file as text: its YAML, where each key stands, and the list of faults that are found in it. */
import { readFile } from 'node:fs/promises';
import {
  type Document,
  LineCounter,
  type Node,
  type YAMLMap,
  type YAMLParseError,
  isCollection,
  isMap,
  isNode,
  isScalar,
  parseDocument,
  visit,
} from 'yaml';
import { ConfigInvalid, messageOf } from '../errors.ts';
import { texts as platform_texts } from '../platform/texts.ts';
import { texts } from './texts.ts';

export type KeyPath = readonly PropertyKey[];

export interface Source {
  /** As it was named, for the technician. */
  readonly file: string;
  readonly value: unknown;
  /** `file:line:col` of a key, or of the closest that is there. */
  readonly place: (path: KeyPath) => { readonly line: number; readonly col: number };
}

/** A configuration of this size is a mistake: another file was named. */
const file_bytes_max = 1_000_000;

/** The text of the file. Throws `ConfigInvalid` when it cannot be read. */
export async function readSource(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new ConfigInvalid([`${file}: ${platform_texts.unreadable(error)}`]);
  });
  if (bytes.length > file_bytes_max) {
    throw new ConfigInvalid([`${file}: ${texts.file_too_large}`]);
  }
  return bytes.toString('utf8');
}

/** Parses YAML 1.2. Throws `ConfigInvalid` with every fault of its syntax. */
export function parseSource(file: string, text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new ConfigInvalid(document.errors.map((error) => syntaxFault(file, lines, error)));
  }
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) {
    throw new ConfigInvalid([`${file}: ${texts.file_empty}`]);
  }
  if (!isMap(document.contents)) {
    throw new ConfigInvalid([`${file}:1:1: ${texts.no_keys}`]);
  }
  const odd_keys = oddKeys(document.contents);
  if (odd_keys.length > 0) {
    const at = odd_keys.map((offset) => lines.linePos(offset));
    throw new ConfigInvalid(at.map(({ line, col }) => `${file}:${line}:${col}: ${texts.key_no_word}`));
  }
  return {
    file,
    value: plainValue(file, document),
    place: (path) => lines.linePos(offsetOf(document.contents, path)),
  };
}

/** Where keys stand that are no text: JavaScript would make some text of them. */
function oddKeys(contents: YAMLMap): readonly number[] {
  const offsets: number[] = [];
  visit(contents, {
    Pair(_, { key }) {
      if (isCollection(key)) offsets.push(key.range?.[0] ?? 0);
    },
  });
  return offsets;
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
  DUPLICATE_KEY: texts.duplicate_key,
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
  readonly add: (path: KeyPath, sentence: string) => void;
  /** `file:line:col key.path: sentence`, in the order of the file. */
  readonly lines: () => readonly string[];
}

export function faultList(source: Source): FaultList {
  const faults: { line: number; col: number; text: string }[] = [];
  return {
    add: (path, sentence) => {
      const { line, col } = source.place(path);
      faults.push({ line, col, text: `${source.file}:${line}:${col} ${pathText(path)}: ${sentence}` });
    },
    lines: () => faults.sort((a, b) => a.line - b.line || a.col - b.col).map(({ text }) => text),
  };
}

/** `drivers[2].options.port` */
function pathText(path: KeyPath): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${String(step)}`))
    .join('');
}
