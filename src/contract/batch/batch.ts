/** Reads the body of `batch`, which `pack.ts` writes. */
import { inflateSync } from 'node:zlib';
import { z } from 'zod';
import { column, decodeColumn, decodeDeltas, deltaColumn } from './columns.ts';
import { batch_keys_max, checkCounts } from './counts.ts';
import { batch_items_max, batch_text_max, type BatchItem, tooMany } from './pack.ts';
import { type JsonLimits, readJson } from '../bounded-json.ts';
import { timeQuality } from '../envelope.ts';
import { json } from '../json.ts';

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

/**
 * The messages of a packed batch, by epoch and sequence number.
 * Throws what zlib throws, a `SyntaxError`, a `z.ZodError` or a `RangeError` when it is no batch or over a limit.
 */
export function unpackBatch(bytes: Uint8Array): BatchItem[] {
  return batchItems(openBatch(bytes));
}

/** Inflates and checks a packed batch without spelling out its messages. Throws as `unpackBatch`. */
export function openBatch(bytes: Uint8Array): Batch {
  return readBatch(inflateSync(bytes, { maxOutputLength: batch_text_max }));
}

/** Checks an inflated batch. Throws as `unpackBatch`. */
export function readBatch(text: Buffer): Batch {
  const value = readJson(text, limits);
  checkCounts(value);
  return batch.parse(value);
}

/** The messages of a batch, by epoch and sequence number. Throws a `RangeError` when it contradicts itself or is over a limit. */
export function batchItems({ groups }: Batch): BatchItem[] {
  const count = groups.reduce((sum, { seq }) => sum + seq.length, 0);
  if (count > batch_items_max) throw tooMany(count);
  const budget = { left: unpacked_text_max };
  return groups.flatMap((one) => readGroup(one, budget)).sort((a, b) => a.epoch - b.epoch || a.seq - b.seq);
}

function readGroup(one: Batch['groups'][number], budget: { left: number }): BatchItem[] {
  const seqs = decodeDeltas(one.seq);
  const times = decodeDeltas(one.t);
  const texts = 'v' in one ? one.v.map((data) => JSON.stringify(data)) : spellOut(one, budget);
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

/** The JSON text of each row's object. */
function spellOut({ seq, k, c }: z.output<typeof columnGroup>, budget: { left: number }): string[] {
  if (c.length !== k.length) throw new RangeError(`${c.length} columns for ${k.length} keys`);
  // The shortest field is `"":0`. Without this a few bytes of constant columns would ask for gigabytes of cells.
  if (k.length * seq.length * 4 > budget.left) throw tooLong();
  const columns = c.map((encoded) => decodeColumn(encoded, seq.length));
  const keys = k.map((key) => `${JSON.stringify(key)}:`);
  return seq.map((_, row) => {
    const text = `{${keys.map((key, at) => `${key}${columns[at]?.[row]}`).join(',')}}`;
    budget.left -= text.length;
    if (budget.left < 0) throw tooLong();
    return text;
  });
}

function tooLong(): RangeError {
  return new RangeError(`a batch of more than ${unpacked_text_max} characters of data`);
}
