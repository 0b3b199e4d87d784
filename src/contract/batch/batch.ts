/** Reads the body of `batch`, which `pack.ts` writes. */
import { inflateSync } from 'node:zlib';
import { z } from 'zod';
import { batch_items_max, batch_text_max, tooMany } from './pack.ts';
import { type BatchItem } from './writer.ts';
import { countValues, decodedText, type JsonLimits, keys_max, tooManyKeys } from '../bounded-json.ts';
import { timeQuality } from '../envelope.ts';
import { json, type Json } from '../json.ts';
import { parseInSteps } from './json-steps.ts';
import { finish, Pace, type Steps } from './steps.ts';
import { decimals_max, powers } from './encode.ts';

/** The data of its messages are not spelt out beyond this: a column of one long constant could grow without end. */
const unpacked_text_max = batch_text_max;
/** 10,000 messages of thirty values. What a message may hold is checked for each of them. */
const limits: JsonLimits = {
  bytes_max: batch_text_max,
  depth_max: 40,
  values_max: 300_000,
  string_max: batch_text_max,
};
/** Two ids, the name of a feed and what stands between. */
const channel_chars_max = 256;
const key_chars_max = 256;
/** Keys of one group with columns. */
const batch_keys_max = 1_024;
/** Keys of an object of the format itself. */
const fields_max = 16;

const decimals = z.int().min(0).max(decimals_max);
const deltas = z
  .array(z.int())
  .min(1)
  .max(batch_items_max)
  .describe('the first value, then the difference of each value from the one before');

const deltaColumn = deltas;
const scaledColumn = z.strictObject({ s: decimals.describe('decimals'), d: deltas });
const timeColumn = z.strictObject({
  t: deltas.describe('UTC timestamps in milliseconds since 1970, as deltas'),
});
const plainColumn = z.strictObject({ v: z.array(json).min(1).max(batch_items_max) });
const constantColumn = z.strictObject({ c: json.describe('the value of every row') });

export const column = z.union([scaledColumn, timeColumn, plainColumn, constantColumn]);
type Column = z.output<typeof column>;

const groupHead = {
  e: z.int().positive().describe('epoch of all messages of the group'),
  ch: z
    .string()
    .min(1)
    .max(channel_chars_max)
    .describe('topic below k1/{kit_id}/up/ of all messages of the group'),
  q: timeQuality.optional().describe('time_quality of all messages of the group'),
  seq: deltaColumn,
  t: deltaColumn.describe('times of observation, UTC, milliseconds since 1970, as deltas'),
};
const columnGroup = z.strictObject({
  ...groupHead,
  k: z.array(z.string().max(key_chars_max)).max(batch_keys_max).describe('keys of data, in order'),
  c: z.array(column).max(batch_keys_max).describe('one column for each key'),
});
const plainGroup = z.strictObject({
  ...groupHead,
  v: z.array(json).min(1).max(batch_items_max).describe('data of each message'),
});

/** What a batch is once inflated. */
export const batch = z.strictObject({
  v: z.literal(1),
  historical: z.boolean().describe('from the buffer: history that never moves a latest value backwards'),
  groups: z.array(z.union([columnGroup, plainGroup])).max(batch_items_max),
});
export type Batch = z.output<typeof batch>;

/** What the parts of a batch are counted by before they are checked. */
const withGroups = z.looseObject({ groups: z.array(json) });
const withColumns = z.looseObject({ c: z.array(json) });
/** Groups and columns that are checked at once. */
const checked_max = 4_096;

/**
 * The messages of a packed batch, by epoch and sequence number.
 * Throws what zlib throws, a `SyntaxError`, a `z.ZodError` or a `RangeError` when it is no batch or over a limit.
 */
export function unpackBatch(bytes: Uint8Array): BatchItem[] {
  return batchItems(openBatch(bytes));
}

/** Inflates and checks a packed batch without spelling out its messages. Throws as `unpackBatch`. */
export function openBatch(bytes: Uint8Array): Batch {
  return finish(openBatchSteps(bytes, new Pace()));
}

/** As `openBatch`, in steps. */
export function* openBatchSteps(bytes: Uint8Array, pace: Pace): Steps<Batch> {
  const text = inflateSync(bytes, { maxOutputLength: batch_text_max });
  if (pace.isDue(text.length)) yield;
  return yield* readBatchSteps(text, pace);
}

/** Checks an inflated batch. Throws as `unpackBatch`. */
export function readBatch(text: Buffer): Batch {
  return finish(readBatchSteps(text, new Pace()));
}

function* readBatchSteps(bytes: Buffer, pace: Pace): Steps<Batch> {
  const text = decodedText(bytes, limits);
  if (pace.isDue(text.length)) yield;
  countValues(text, limits);
  if (pace.isDue(text.length)) yield;
  const value = yield* parseInSteps(text, pace);
  checkCounts(value);
  return yield* checkGroups(value);
}

/** As `batch.parse`, with few groups at once: the schema takes 0.1 s for the most that a batch may hold. */
function* checkGroups(value: unknown): Steps<Batch> {
  const given = withGroups.safeParse(value).data;
  const ends = endsOf(given?.groups ?? []);
  if (!given || ends.length < 2) return batch.parse(value);
  const groups: Batch['groups'] = [];
  let start = 0;
  for (const end of ends) {
    const part = batch.safeParse({ ...given, groups: given.groups.slice(start, end) });
    if (!part.success) throw new z.ZodError(part.error.issues.map((issue) => moved(issue, start)));
    for (const one of part.data.groups) groups.push(one);
    start = end;
    yield;
  }
  return { ...batch.parse({ ...given, groups: [] }), groups };
}

/** Where the parts end that are checked at once. */
function endsOf(groups: readonly unknown[]): readonly number[] {
  const ends: number[] = [];
  let checked = 0;
  for (const [at, one] of groups.entries()) {
    checked += 1 + (withColumns.safeParse(one).data?.c.length ?? 0);
    if (checked < checked_max && at < groups.length - 1) continue;
    ends.push(at + 1);
    checked = 0;
  }
  return ends;
}

/** The issue with the place of its group among all. */
function moved(issue: z.core.$ZodIssue, start: number): z.core.$ZodIssue {
  const [list, at, ...rest] = issue.path;
  return typeof at === 'number' ? { ...issue, path: [list ?? '', start + at, ...rest] } : issue;
}

/** The messages of a batch, by epoch and sequence number. Throws a `RangeError` when it contradicts itself or is over a limit. */
export function batchItems(opened: Batch): BatchItem[] {
  return finish(batchItemSteps(opened, new Pace()));
}

/** As `batchItems`, in steps. */
export function* batchItemSteps({ groups }: Batch, pace: Pace): Steps<BatchItem[]> {
  const count = groups.reduce((sum, { seq }) => sum + seq.length, 0);
  if (count > batch_items_max) throw tooMany(count);
  const budget = { left: unpacked_text_max };
  const items: BatchItem[] = [];
  for (const one of groups) for (const item of yield* readGroup(one, budget, pace)) items.push(item);
  return items.sort((a, b) => a.epoch - b.epoch || a.seq - b.seq);
}

function* readGroup(
  one: Batch['groups'][number],
  budget: { left: number },
  pace: Pace,
): Steps<readonly BatchItem[]> {
  const seqs = decodeDeltas(one.seq);
  const times = decodeDeltas(one.t);
  const texts = 'v' in one ? yield* write(one.v, pace) : yield* spellOut(one, budget, pace);
  if (times.length !== seqs.length || texts.length !== seqs.length) {
    throw new RangeError(`${seqs.length} messages with ${times.length} times and ${texts.length} data`);
  }
  const head = one.q
    ? { channel: one.ch, epoch: one.e, time_quality: one.q }
    : { channel: one.ch, epoch: one.e };
  return texts.map((data, row) =>
    Object.assign({ seq: seqs[row] ?? 0, time_ms: times[row] ?? 0, data }, head),
  );
}

function* write(values: readonly Json[], pace: Pace): Steps<string[]> {
  const texts: string[] = [];
  for (const value of values) {
    const text = JSON.stringify(value);
    texts.push(text);
    if (pace.isDue(text.length)) yield;
  }
  return texts;
}

/** The JSON text of each row's object. */
function* spellOut(
  { seq, k, c }: z.output<typeof columnGroup>,
  budget: { left: number },
  pace: Pace,
): Steps<string[]> {
  if (c.length !== k.length) throw new RangeError(`${c.length} columns for ${k.length} keys`);
  // The shortest field is `"":0`. Without this a few bytes of constant columns would ask for gigabytes of cells.
  if (k.length * seq.length * 4 > budget.left) throw tooLong();
  const columns: (readonly string[])[] = [];
  for (const encoded of c) {
    columns.push('v' in encoded ? yield* write(encoded.v, pace) : decodeColumn(encoded, seq.length));
    if (pace.isDue(seq.length)) yield;
  }
  const keys = k.map((key) => `${JSON.stringify(key)}:`);
  const rows: string[] = [];
  for (const row of seq.keys()) {
    const text = `{${keys.map((key, at) => `${key}${columns[at]?.[row]}`).join(',')}}`;
    budget.left -= text.length;
    if (budget.left < 0) throw tooLong();
    rows.push(text);
    if (pace.isDue(text.length)) yield;
  }
  return rows;
}

function tooLong(): RangeError {
  return new RangeError(`a batch of more than ${unpacked_text_max} characters of data`);
}

/** Undoes `encodeDeltas`. */
export function decodeDeltas(differences: readonly number[]): number[] {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}

/**
 * JSON texts of the values of a column of `rows` rows.
 * Throws a `RangeError` when the column has another number of rows or a time that does not exist.
 */
export function decodeColumn(encoded: Column, rows: number): readonly string[] {
  if ('c' in encoded) return Array<string>(rows).fill(JSON.stringify(encoded.c));
  const texts = textsOf(encoded);
  if (texts.length !== rows) throw new RangeError(`a column has ${texts.length} values for ${rows} messages`);
  return texts;
}

function textsOf(encoded: Exclude<Column, { c: Json }>): string[] {
  if ('v' in encoded) return encoded.v.map((value) => JSON.stringify(value));
  if ('t' in encoded) return decodeDeltas(encoded.t).map((time_ms) => `"${new Date(time_ms).toISOString()}"`);
  const power = powers[encoded.s] ?? 1;
  return decodeDeltas(encoded.d).map((integer) => JSON.stringify(integer / power));
}

/**
 * Checks the counts of a batch before any schema sees it, and stops at the first fault: a schema collects a fault for each
 * element, so 8 kB of compressed text filled the memory of a reader. Throws a `RangeError` at the first count that contradicts
 * another or exceeds its limit.
 */
function checkCounts(value: unknown): void {
  const groups = fieldsOf(value, 'a batch')['groups'];
  if (!Array.isArray(groups)) return;
  if (groups.length > batch_items_max)
    throw new RangeError(`${groups.length} groups; at most ${batch_items_max}`);
  let count = 0;
  // Keys of columns, which become keys of messages.
  const keys = new Set<string>();
  for (const group of groups) {
    count += checkGroup(fieldsOf(group, 'a group'), keys);
    if (count > batch_items_max) throw tooMany(count);
  }
}

/** The number of messages of the group. */
function checkGroup({ seq, t, k, c, v }: Readonly<Record<string, unknown>>, known: Set<string>): number {
  const rows = lengthOf(seq, 'seq');
  if (rows > batch_items_max) throw tooMany(rows);
  const times = lengthOf(t, 't');
  const data = v === undefined ? rows : lengthOf(v, 'v');
  if (times !== rows || data !== rows) {
    throw new RangeError(`${rows} messages with ${times} times and ${data} data`);
  }
  checkIntegers(seq);
  checkIntegers(t);
  if (v === undefined) checkColumns(k, c, rows, known);
  return rows;
}

function checkColumns(k: unknown, c: unknown, rows: number, known: Set<string>): void {
  const keys = lengthOf(k, 'k');
  const columns = lengthOf(c, 'c');
  if (keys > batch_keys_max) throw new RangeError(`${keys} keys in a group; at most ${batch_keys_max}`);
  if (columns !== keys) throw new RangeError(`${columns} columns for ${keys} keys`);
  if (!Array.isArray(k) || !Array.isArray(c)) return;
  for (const key of k) {
    if (typeof key !== 'string') throw new RangeError('a key that is no string');
    known.add(key);
  }
  if (known.size > keys_max) throw tooManyKeys();
  for (const column of c) {
    const { d, t, v } = fieldsOf(column, 'a column');
    for (const list of [d, t, v]) {
      if (list === undefined) continue;
      const length = lengthOf(list, 'a column');
      if (length !== rows) throw new RangeError(`a column has ${length} values for ${rows} messages`);
    }
    checkIntegers(d);
    checkIntegers(t);
  }
}

function checkIntegers(list: unknown): void {
  if (Array.isArray(list) && !list.every(Number.isSafeInteger)) {
    throw new RangeError('a list of differences with a value that is no integer');
  }
}

function lengthOf(list: unknown, name: string): number {
  if (!Array.isArray(list)) throw new RangeError(`${name}: expected array`);
  return list.length;
}

function fieldsOf(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RangeError(`${name}: expected object`);
  }
  const entries = Object.entries(value);
  if (entries.length > fields_max)
    throw new RangeError(`${name} of ${entries.length} keys; at most ${fields_max}`);
  return Object.fromEntries(entries);
}
