/** Reads the body of `batch`, which `pack.ts` writes. */
import { inflateSync } from 'node:zlib';
import { z } from 'zod';
import { column, decodeColumn, decodeDeltas, deltaColumn } from './columns.ts';
import { batch_keys_max, checkCounts } from './counts.ts';
import { batch_items_max, batch_text_max, type BatchItem, tooMany } from './pack.ts';
import { countValues, decodedText, type JsonLimits } from '../bounded-json.ts';
import { timeQuality } from '../envelope.ts';
import { json, type Json } from '../json.ts';
import { parseInSteps } from './json-steps.ts';
import { finish, Pace, type Steps } from './steps.ts';

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
