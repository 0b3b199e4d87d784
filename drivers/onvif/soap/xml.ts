/**
 * XML for requests and replies: escaped text, and replies as plain trees of text. Our own reader, since replies come from an open
 * network and are read in the main thread: fast-xml-parser 5 needs up to 4 s for a hostile reply of 1 MiB.
 */
import { texts } from '../texts.ts';

/** An element of a reply. Names are without prefix and in lower case; every value is the text that the device sent. */
export interface XmlNode {
  readonly text: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Readonly<Record<string, readonly XmlNode[]>>;
}

/** A recorder lists 100 profiles in some 450 kB. */
export const reply_bytes_max = 1_048_576;
const depth_max = 48;
/** Of one reply. */
const tags_max = 30_000;
const attributes_max = 30_000;

/** Text for element content and for attributes. Characters that XML 1.0 cannot carry are left out. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replace(/[&<>"']/gu, (sign) => `&#${sign.charCodeAt(0)};`);
}

/**
 * Reads a document, as the node that holds its root element. Linear in time, and in one turn: 1 MiB in 15 to 60 ms. Throws for what
 * nests too deep, has too many tags or attributes, or declares a document type; no entity is ever expanded but those of XML itself.
 */
export function parseXml(xml: string): XmlNode {
  const document: OpenElement = { name: '', attributes: {}, texts: [], children: record() };
  const open = [document];
  let tags = 0;
  let left = attributes_max;
  let at = xml.startsWith('\uFEFF') ? 1 : 0;
  for (;;) {
    const parent = open.at(-1) ?? document;
    const start = xml.indexOf('<', at);
    if (start < 0) throw new Error(parent === document ? texts.no_envelope : texts.xml_ends('an element'));
    addText(parent, xml.slice(at, start));
    const second = xml[start + 1];
    if (second === '!' || second === '?') {
      const { text, end } = readSection(xml, start);
      parent.texts.push(text);
      at = end;
      continue;
    }
    tags += 1;
    if (tags > tags_max) throw new Error(texts.xml_too_deep);
    if (second === '/') at = readEndTag(xml, start, open);
    else {
      const tag = readStartTag(xml, start, left);
      at = tag.end;
      left -= tag.count;
      enter(open, tag);
    }
    // What follows the root element is none of it.
    if (open.length === 1) return nodeOf(document);
  }
}

/** An element whose end tag was not read yet. */
interface OpenElement {
  /** As it was sent, with its prefix. */
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly texts: string[];
  readonly children: Record<string, XmlNode[]>;
}

interface StartTag {
  readonly name: string;
  readonly attributes: Record<string, string>;
  /** Number of attributes, also of those that say nothing. */
  readonly count: number;
  readonly isEmpty: boolean;
  /** Directly behind the tag. */
  readonly end: number;
}

/** Names such as `__proto__` are properties like any other. */
function record<T>(): Record<string, T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object without properties has none of another type
  return Object.create(null) as Record<string, T>;
}

function nodeOf({ texts: parts, attributes, children }: OpenElement): XmlNode {
  return { text: parts.join('').trim(), attributes, children };
}

/** A new element becomes the innermost one, unless it is complete. */
function enter(open: OpenElement[], { name, attributes, isEmpty }: StartTag): void {
  open.push({ name, attributes, texts: [], children: record() });
  if (open.length - 1 > depth_max) throw new Error(texts.xml_too_deep);
  if (isEmpty) close(open);
}

/** The innermost element is complete: it becomes a child of the one around it. */
function close(open: OpenElement[]): void {
  const element = open.pop();
  const parent = open.at(-1);
  if (!element || !parent) throw new Error(texts.xml_not_open);
  const name = plain(element.name);
  const known = parent.children[name];
  if (known) known.push(nodeOf(element));
  else parent.children[name] = [nodeOf(element)];
}

function addText(parent: OpenElement, text: string): void {
  if (text === '') return;
  if (parent.name === '' && text.trim() !== '') throw new Error(texts.no_envelope);
  parent.texts.push(text.includes('&') ? text.replaceAll(reference, decoded) : text);
}

/** Some cameras do not escape names that people gave: any other ampersand stays as it is. */
const reference = /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([\da-f]{1,6}));/giu;
const signs: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decoded(whole: string, name?: string, decimal?: string, hexadecimal?: string): string {
  if (name !== undefined) return signs[name.toLowerCase()] ?? whole;
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal);
  return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
}

const cdata = '<![CDATA[';
const sections = [
  ['<!--', '-->'],
  [cdata, ']]>'],
  ['<?', '?>'],
] as const;

/** A comment, a processing instruction or literal text; tags inside them are none. */
function readSection(xml: string, start: number): { readonly text: string; readonly end: number } {
  const [sign, ending] = sections.find(([each]) => xml.startsWith(each, start)) ?? [];
  if (sign === undefined || ending === undefined) throw new Error(texts.xml_doctype);
  const begin = start + sign.length;
  const end = xml.indexOf(ending, begin);
  if (end < 0) throw new Error(texts.xml_ends(sign));
  return { text: sign === cdata ? xml.slice(begin, end) : '', end: end + ending.length };
}

const tag_name = /[^\s<>/="'!?]+/uy;
const tag_end = /\s*(\/?)>/uy;
/** A sign `<` within a value is no XML. */
const attribute_pair = /\s+([^\s<>/="']+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/uy;

/** Closes the innermost element; returns where its end tag ends. */
function readEndTag(xml: string, start: number, open: OpenElement[]): number {
  const name = matchAt(tag_name, xml, start + 2)?.[0];
  const end = matchAt(tag_end, xml, start + 2 + (name?.length ?? 0));
  if (name === undefined || !end || end[1] === '/') throw new Error(texts.xml_tag_open);
  if (open.at(-1)?.name !== name) throw new Error(texts.xml_not_open);
  close(open);
  return end.index + end[0].length;
}

function readStartTag(xml: string, start: number, count_max: number): StartTag {
  const name = matchAt(tag_name, xml, start + 1)?.[0];
  if (name === undefined) throw new Error(texts.xml_tag_open);
  let at = start + 1 + name.length;
  const attributes = record<string>();
  let count = 0;
  for (; count <= count_max; count += 1) {
    const pair = matchAt(attribute_pair, xml, at);
    if (!pair) break;
    at += pair[0].length;
    const [, key = '', double, single] = pair;
    // Names are read without prefixes, so that declarations of namespaces say nothing.
    if (!/^xmlns(?::|$)/u.test(key))
      attributes[plain(key)] = (double ?? single ?? '').replaceAll(reference, decoded);
  }
  if (count > count_max) throw new Error(texts.xml_too_deep);
  const end = matchAt(tag_end, xml, at);
  if (!end) throw new Error(texts.xml_tag_open);
  return { name, attributes, count, isEmpty: end[1] === '/', end: end.index + end[0].length };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** The first child of each name in turn; undefined where one is missing. */
export function find(node: XmlNode | undefined, ...path: readonly string[]): XmlNode | undefined {
  return path.reduce<XmlNode | undefined>((at, name) => all(at, name)[0], node);
}

/** The text there; undefined when it is missing or empty. */
export function textAt(node: XmlNode | undefined, ...path: readonly string[]): string | undefined {
  const text = find(node, ...path)?.text;
  return text === '' ? undefined : text;
}

export function all(node: XmlNode | undefined, name: string): readonly XmlNode[] {
  const key = plain(name);
  return node && Object.hasOwn(node.children, key) ? (node.children[key] ?? []) : [];
}

/** All elements of a name, at any depth below `node`. */
export function everywhere(node: XmlNode | undefined, name: string): readonly XmlNode[] {
  if (!node) return [];
  const deeper = Object.values(node.children).flatMap((each) => each.flatMap((one) => everywhere(one, name)));
  return [...all(node, name), ...deeper];
}

export function attribute(node: XmlNode | undefined, name: string): string | undefined {
  const key = plain(name);
  return node && Object.hasOwn(node.attributes, key) ? node.attributes[key] : undefined;
}

/** xs:boolean, also in the spellings that cameras use. */
export function truth(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (/^(?:true|1|on|active|yes)$/iu.test(text)) return true;
  return /^(?:false|0|off|inactive|no)$/iu.test(text) ? false : undefined;
}

function plain(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}
