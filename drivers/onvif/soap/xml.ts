/** XML for requests and replies: escaped text, and replies as plain trees of text. */
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
const nodes_max = 30_000;

/** Text for element content and for attributes. Characters that XML 1.0 cannot carry are left out. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replace(/[&<>"']/gu, (sign) => `&#${sign.charCodeAt(0)};`);
}

/**
 * Sanitizes a reply for npm onvif, in linear time: its own expression for namespace declarations is quadratic, and
 * its parser recurses once for each open element. Throws for what nests too deep or declares a document type.
 */
export function tamed(xml: string): string {
  const markup = plainMarkup(xml).replaceAll(bare_ampersand, '&amp;');
  countElements(markup);
  return markup
    .replace(/\sxmlns(?::[\w.-]{1,64})?\s{0,8}=\s{0,8}(?:"[^"]{0,512}"|'[^']{0,512}')/gu, '')
    .replaceAll('xmlns', 'xml-ns');
}

/** Some cameras do not escape names that people gave, so that the whole reply would be unreadable. */
const bare_ampersand = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)/giu;

/** Without comments and processing instructions, and with CDATA as plain text: tags inside them are none. Linear. */
function plainMarkup(xml: string): string {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    const start = nextSpecial(xml, at);
    if (start < 0) break;
    parts.push(xml.slice(at, start));
    const [open, close] = special.find(([sign]) => xml.startsWith(sign, start)) ?? [];
    if (open === undefined || close === undefined) throw new Error(texts.xml_doctype);
    const end = xml.indexOf(close, start + open.length);
    if (end < 0) throw new Error(texts.xml_ends(open));
    if (open === cdata) parts.push(escapeXml(xml.slice(start + open.length, end)));
    at = end + close.length;
  }
  return [...parts, xml.slice(at)].join('');
}
const cdata = '<![CDATA[';
const special = [
  ['<!--', '-->'],
  [cdata, ']]>'],
  ['<?', '?>'],
] as const;

function nextSpecial(xml: string, from: number): number {
  for (let at = xml.indexOf('<', from); at >= 0; at = xml.indexOf('<', at + 1)) {
    if (xml[at + 1] === '!' || xml[at + 1] === '?') return at;
  }
  return -1;
}

/** Every sign `<` opens a tag here: one inside of an attribute is no XML, and could hide how deep the elements nest. */
function countElements(markup: string): void {
  let depth = 0;
  let elements = 0;
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', at + 1)) {
    const end = endOfTag(markup, at);
    if (markup[at + 1] === '/') depth -= 1;
    else if (markup[end - 1] !== '/') depth += 1;
    elements += 1;
    at = end;
    if (depth < 0) throw new Error(texts.xml_not_open);
    if (depth > depth_max || elements > nodes_max) throw new Error(texts.xml_too_deep);
  }
}

/** Where the tag that begins here ends. A sign `>` inside of quotes ends none. */
function endOfTag(markup: string, start: number): number {
  let quote: string | undefined;
  for (let at = start + 1; at < markup.length; at += 1) {
    const sign = markup[at];
    if (sign === '<') break;
    if (quote !== undefined) {
      if (sign === quote) quote = undefined;
    } else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === '>') return at;
  }
  throw new Error(texts.xml_tag_open);
}

/** The tree of what npm onvif parsed: a text, or an object of `$` (attributes), `_` (text) and arrays of children. */
export function treeOf(parsed: unknown, depth = 0): XmlNode {
  if (typeof parsed === 'string') return { text: parsed.trim(), attributes: {}, children: {} };
  if (!isRecord(parsed) || depth > depth_max) return { text: '', attributes: {}, children: {} };
  const children: Record<string, readonly XmlNode[]> = {};
  for (const [name, value] of Object.entries(parsed)) {
    if (name === '$' || name === '_' || !Array.isArray(value)) continue;
    children[plain(name)] = value.map((each: unknown) => treeOf(each, depth + 1));
  }
  const text = typeof parsed['_'] === 'string' ? parsed['_'].trim() : '';
  return { text, attributes: attributesOf(parsed['$']), children };
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

/** All children of a name. */
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

function attributesOf(value: unknown): Record<string, string> {
  if (!isRecord(value)) return {};
  const pairs = Object.entries(value).map(([name, text]) => [plain(name), String(text)] as const);
  return Object.fromEntries(pairs);
}

function plain(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
