/** Reads the XML of the vendor's own protocol: nonces and alarms. Pure, and bounded in length, depth and count. */
import { aiType } from '../../../src/contract/feeds.ts';
import type { Reported } from '../channels/alarms.ts';

interface Element {
  readonly name: string;
  readonly depth: number;
  /** Directly after its start tag. */
  readonly text: string;
}

const text_chars_max = 65_536;
const value_chars_max = 256;
const elements_max = 4_096;
const depth_max = 16;
/** Channels of the largest recorder. */
const events_max = 64;
const channel_max = 255;

/** Undefined without one. */
export function nonceIn(text: string): string | undefined {
  const nonce = elementsOf(text)?.find(({ name }) => name === 'nonce')?.text;
  return nonce === '' ? undefined : nonce;
}

/** Undefined when the text is no list of alarms. Other events in it, such as day and night, are left out. */
export function reportsIn(text: string): readonly Reported[] | undefined {
  const elements = elementsOf(text);
  if (!elements?.some(({ name }) => name === 'AlarmEventList')) return undefined;
  const events = [...elements.entries()].filter(([, { name }]) => name === 'AlarmEvent').slice(0, events_max);
  return events.flatMap(([at, { depth }]) => {
    const rest = elements.slice(at + 1);
    const end = rest.findIndex((each) => each.depth <= depth);
    const children = (end < 0 ? rest : rest.slice(0, end)).filter((each) => each.depth === depth + 1);
    return reportOf(new Map(children.map((child) => [child.name, child.text]))) ?? [];
  });
}

/** `status` is none, or MD, visitor and others; `AItype` is none, or kinds. */
function reportOf(values: ReadonlyMap<string, string>): Reported | undefined {
  const digits = values.get('channelId') ?? '';
  const channel = /^\d{1,3}$/u.test(digits) ? Number(digits) : channel_max + 1;
  if (channel > channel_max) return undefined;
  const states = wordsOf(values.get('status'));
  const kinds = wordsOf(values.get('AItype'));
  // The infrared sensor of battery cameras is the kind "other", as in GetEvents.
  const sensed = kinds?.includes('other') === true;
  return {
    channel,
    motion: states === undefined && !sensed ? undefined : sensed || states?.includes('MD') === true,
    visitor: states?.includes('visitor'),
    ai: kinds && aiType.options.filter((type) => kinds.includes(type)),
  };
}

function wordsOf(value: string | undefined): readonly string[] | undefined {
  return value?.split(',').map((word) => word.trim());
}

/** All elements in their order; undefined for a text beyond the limits, or with a document type. */
function elementsOf(text: string): readonly Element[] | undefined {
  if (text.length > text_chars_max) return undefined;
  const elements: Element[] = [];
  let depth = 0;
  for (let begin = text.indexOf('<'); begin >= 0; begin = text.indexOf('<', begin + 1)) {
    const end = text.indexOf('>', begin);
    if (end < 0 || text[begin + 1] === '!') return undefined;
    const tag = text.slice(begin + 1, end);
    if (tag.startsWith('?')) continue;
    if (tag.startsWith('/')) {
      depth -= 1;
      if (depth < 0) return undefined;
      continue;
    }
    if (depth >= depth_max || elements.length >= elements_max) return undefined;
    elements.push({ name: tag.split(/[\s/]/u, 1)[0] ?? '', depth, text: valueAt(text, end + 1) });
    if (!tag.endsWith('/')) depth += 1;
  }
  return elements;
}

function valueAt(text: string, begin: number): string {
  const end = text.indexOf('<', begin);
  return text.slice(begin, Math.min(end < 0 ? text.length : end, begin + value_chars_max)).trim();
}
