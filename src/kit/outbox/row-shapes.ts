/**
 * Checks that a row of each table is valid and no remainder of a broken page. Plain functions, no schemas: the
 * thread of the buffer would carry the library all its life for the one day on which its file is damaged.
 */
import { drop_reasons } from '../../contract/drop-reasons.ts';
import { lanes } from '../../contract/lanes.ts';
import { seq_max } from './row.ts';

type Shape<T> = (value: unknown) => value is T;

/** Epochs are below this. */
export const epochs_end = 2 ** 20;

const text: Shape<string> = (value) => typeof value === 'string';
const number: Shape<number> = (value) => typeof value === 'number';
const whole = within(Number.MIN_SAFE_INTEGER);
const count = within(0);
const rowKey = within(seq_max, epochs_end * seq_max);
const jsonText: Shape<string> = (value): value is string => text(value) && isJson(value);
const laneName = oneOf(lanes);
const taskState = oneOf(['pending', 'running', 'completed', 'failed'] as const);

/** An epoch's number. */
export const epochNumber = within(1, epochs_end - 1);

export const rowShapes = {
  topics: row(whole, text),
  channels: row(text, whole),
  lane: row(rowKey, whole, whole, orNull(whole), jsonText),
  depth: row(laneName, count, count),
  total: row(text, count, count),
  meta: row(text, number),
  metaText: row(text, text),
  announced: row(text, rowKey, jsonText),
  epochs: row(epochNumber, text, orNull(number)),
  drops: row(epochNumber, laneName, oneOf(drop_reasons), within(1), count, count),
  tasks: row(whole, text, taskState, jsonText, jsonText, whole, whole, orNull(whole)),
  quarantine: row(rowKey, laneName, text, whole, orNull(whole), whole, text, jsonText),
};

/** The rows that are valid for their table. */
export function* valid<T>(shape: Shape<T>, rows: Iterable<unknown>): Generator<T> {
  for (const each of rows) if (shape(each)) yield each;
}

function within(low: number, high = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value): value is number =>
    Number.isSafeInteger(value) && number(value) && value >= low && value <= high;
}

function oneOf<const T extends string>(names: readonly T[]): Shape<T> {
  const known = new Set<unknown>(names);
  return (value): value is T => known.has(value);
}

function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return (value): value is T | null => value === null || shape(value);
}

function row<T extends readonly unknown[]>(...shapes: { readonly [K in keyof T]: Shape<T[K]> }): Shape<T> {
  return (value): value is T =>
    Array.isArray(value) && value.length === shapes.length && shapes.every((shape, at) => shape(value[at]));
}

/** Bodies are stored as JSON text and not parsed in transit; this detects text that a damaged disk has corrupted. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
