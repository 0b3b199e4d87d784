/** Sanitises foreign names and texts, so that they cannot hide or reorder characters. */
import { t } from '../words/words.ts';
import { rate } from '../units.ts';
import { isRecord } from '../json.ts';

const name_chars_max = 200;
/** A device's own words with what to do about them. */
export const sentence_chars_max = 1_000;
/** Control characters, marks that turn the direction of writing round, and characters without width. */
const hidden = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

/** Replaces each character that would hide or reorder others by a visible sign, and cuts the text. */
export function plain(value: unknown, chars_max = name_chars_max): string {
  const text = (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replaceAll(
    hidden,
    '\ufffd',
  );
  return text.length > chars_max ? `${text.slice(0, chars_max - 1).toWellFormed()}…` : text;
}

const keys: Map<string, string> = new Map();
const keys_max = 5_000;

/** Orders names as people count: `Kit 2` before `Kit 10`. Kept, since lists are ordered at each drawing. */
export function byName(a: string, b: string): number {
  const [one, other] = [keyOf(a), keyOf(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

function keyOf(text: string) {
  const known = keys.get(text);
  if (known !== undefined) return known;
  if (keys.size >= keys_max) keys.clear();
  const key = text.toLowerCase().replaceAll(/\d+/gu, (digits) => digits.padStart(12, '0'));
  keys.set(text, key);
  return key;
}

/** A text of the kit as a whole sentence. Names such as `eth3` and `onvif:` stay as they are. */
export function sentence(text: string): string {
  return text.replace(/^\p{Ll}(?=\p{Ll}* )/u, (first) => first.toUpperCase());
}

/** Turns `remaining_pct` into "remaining". The unit goes to the value. */
export function label(name: string): string {
  return plain(name)
    .replace(/_(?:pct|ms|m|mps|s|bps|mbps|gb|dbm|mhz|db|c)$/u, '')
    .replaceAll('_', ' ');
}

const units: readonly (readonly [RegExp, string])[] = [
  [/_pct$/u, ' %'],
  [/_ms$/u, ' ms'],
  [/_mps$|^ground_?speed$|^airspeed$/u, ' m/s'],
  [/_m$/u, ' m'],
  [/_s$/u, ' s'],
  [/^voltage$/u, ' V'],
  [/^current$/u, ' A'],
  [/^(?:heading|bearing|roll|pitch|yaw)$/u, '°'],
  [/_dbm$/u, ' dBm'],
  [/_mhz$/u, ' MHz'],
  [/_db$/u, ' dB'],
  [/_c$/u, ' °C'],
];

/** Returns the unit that a name contains, with a space before it. */
export function unitOf(name: string): string {
  return units.find(([form]) => form.test(name))?.[1] ?? '';
}

/** Formats a feed value with the unit from its name. Null is "not reported", never 0. */
export function fieldText(name: string, value: unknown): string {
  if (value === null || value === undefined) return t.notReported;
  if (typeof value === 'boolean') return value ? t.yes : t.no;
  if (typeof value === 'number') {
    if (name.endsWith('_bps')) return rate(value);
    const digits = /^(?:lat|lon)$/u.test(name) ? 6 : 2;
    return `${Number(value.toFixed(digits))}${unitOf(name)}`;
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? t.none : plain(value.map((each) => fieldText(name, each)).join('; '));
  }
  if (isRecord(value)) {
    const parts = Object.entries(value).map(([key, part]) => `${label(key)} ${fieldText(key, part)}`);
    return plain(parts.join(', '));
  }
  return plain(value);
}

/** Formats a number with its unit, or "not reported". */
export function amount(value: number | null | undefined, unit: string, digits: number = 0): string {
  return value === null || value === undefined ? t.notReported : `${Number(value.toFixed(digits))}${unit}`;
}
