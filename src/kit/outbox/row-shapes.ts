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

/** The columns of the tables, the first the one that orders the rows. */
export const rowShapes = {
  topics: row({ id: whole, channel: text }),
  channels: row({ channel: text, id: whole }),
  lane: row({ id: rowKey, topic: whole, time_ms: whole, mono_ms: orNull(whole), body: jsonText }),
  depth: row({ lane: laneName, rows: count, bytes: count }),
  total: row({ lane: text, rows: count, bytes: count }),
  meta: row({ key: text, value: number }),
  metaText: row({ key: text, value: text }),
  announced: row({ channel: text, id: rowKey, body: jsonText }),
  epochs: row({ epoch: epochNumber, boot_id: text, clock_offset_ms: orNull(number) }),
  drops: row({
    epoch: epochNumber,
    lane: laneName,
    reason: oneOf(drop_reasons),
    rows: within(1),
    lo: count,
    hi: count,
  }),
  tasks: row({
    arrival: whole,
    task_id: text,
    state: taskState,
    dispatch: jsonText,
    result: jsonText,
    received_ms: whole,
    updated_ms: whole,
    deadline_ms: orNull(whole),
  }),
  quarantine: row({
    id: rowKey,
    lane: laneName,
    channel: text,
    time_ms: whole,
    mono_ms: orNull(whole),
    code: whole,
    reason: text,
    body: jsonText,
  }),
};

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

export interface RowShape<T> {
  readonly columns: readonly string[];
  /** The row of these values, which stand in the order of the columns; undefined where one is not valid. */
  readonly of: (values: readonly unknown[]) => T | undefined;
}

function row<T extends object>(shapes: { readonly [K in keyof T]: Shape<T[K]> }): RowShape<T> {
  const columns = Object.keys(shapes);
  const tests = Object.entries<Shape<unknown>>(shapes);
  const isRow = (value: object): value is T =>
    tests.every(([column, test]) => test(Reflect.get(value, column)));
  return {
    columns,
    of: (values) => {
      const value = Object.fromEntries(columns.map((column, at) => [column, values[at]]));
      return values.length === columns.length && isRow(value) ? value : undefined;
    },
  };
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
