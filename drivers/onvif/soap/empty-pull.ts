/**
 * Recognises the answer to a pull without events. Almost all replies of a camera are such, and reading them with the parser of
 * npm onvif is most of what a quiet camera costs. Pure.
 */
import type { XmlNode } from './xml.ts';

/** The longest, of gSOAP with all its namespaces, have some 4,000. */
const chars_max = 8_192;

const namespaces = String.raw`(?:\s+xmlns(?::[\w.-]+)?=(?:"[^"<>&]*"|'[^'<>&]*'))*\s*`;
const space = String.raw`\s*`;
/** An element whose prefix is kept under this name. */
const start = (prefix: string, name: string): string => `<(?<${prefix}>[\\w.-]+:)?${name}${namespaces}>`;
const time = (prefix: string, name: string): string =>
  `${start(prefix, name)}(?<${name}>[\\s\\dTZ:.+-]+)</\\k<${prefix}>${name}>`;
/** Nothing of a header counts. */
const header = String.raw`(?:<\k<e>Header${namespaces}(?:/>|>(?:<[^<>!?]+>|[^<>&])*?</\k<e>Header>))?`;
const empty_pull = new RegExp(
  [
    String.raw`^(?:<\?xml[^<>]*\?>)?`,
    start('e', 'Envelope'),
    header,
    String.raw`<\k<e>Body${namespaces}>`,
    start('p', 'PullMessagesResponse'),
    time('c', 'CurrentTime'),
    time('t', 'TerminationTime'),
    String.raw`</\k<p>PullMessagesResponse>`,
    String.raw`</\k<e>Body>`,
    String.raw`</\k<e>Envelope>$`,
  ].join(space),
  'u',
);

/** The SOAP body, as the parser would read it; undefined for anything else, which the parser must read. */
export function emptyPull(xml: string): XmlNode | undefined {
  if (xml.length > chars_max) return undefined;
  const { CurrentTime: now, TerminationTime: end } = empty_pull.exec(xml.trim())?.groups ?? {};
  if (now === undefined || end === undefined) return undefined;
  const times = { currenttime: [node(now)], terminationtime: [node(end)] };
  return node('', { pullmessagesresponse: [node('', times)] });
}

function node(text: string, children: XmlNode['children'] = {}): XmlNode {
  return { text: text.trim(), attributes: {}, children };
}
