/**
 * The body of `batch`: many messages in one, compressed. Messages of one channel and epoch with the same keys stand
 * together in a group, each key as a column, since neighbours of a column differ little.
 */
import { deflateSync, inflateSync } from 'node:zlib';
import { z } from 'zod';
import {
  column,
  decodeColumn,
  decodeDeltas,
  deltaColumn,
  encodeColumn,
  encodeDeltas,
} from './batch-columns.ts';
import { timeQuality, type Observed } from './envelope.ts';
import { json, type Json } from './json.ts';

/** Messages in one batch. */
export const batch_items_max = 10_000;
/** Bytes of a batch before compression and once inflated. */
export const batch_text_max = 8 * 1024 * 1024;
/** The data of its messages are not spelt out beyond this: a column of one long constant could grow without end. */
const unpacked_text_max = 4 * batch_text_max;
/** Groups of one channel that have columns; what is more varied is kept as it is. */
const column_groups_max = 16;
/** Columns leave little to search for: higher levels save a few hundredths and cost a tenth of the drain. */
const deflate_level = 3;

/** One message of a batch. `data` is JSON text; `null` stands for the empty payload that clears a retained topic. */
export interface BatchItem extends Observed {
  /** The topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  readonly data: string;
}

const groupHead = {
  e: z.int().positive().describe('epoch of all messages of the group'),
  ch: z.string().min(1).describe('topic below k1/{kit_id}/up/ of all messages of the group'),
  q: timeQuality.optional().describe('time_quality of all messages of the group'),
  seq: deltaColumn,
  t: deltaColumn.describe('times of observation, UTC, milliseconds since 1970, as deltas'),
};
const columnGroup = z.strictObject({
  ...groupHead,
  k: z.array(z.string()).describe('keys of data, in order'),
  c: z.array(column).describe('one column for each key'),
});
const plainGroup = z.strictObject({
  ...groupHead,
  v: z.array(json).min(1).describe('data of each message'),
});

/** What a batch is once inflated. */
export const batch = z.strictObject({
  v: z.literal(1),
  historical: z.boolean().describe('from the buffer: history that never moves a latest value backwards'),
  groups: z.array(z.union([columnGroup, plainGroup])),
});
export type Batch = z.output<typeof batch>;

/**
 * Packs messages for `channels.batch`.
 * Throws a `RangeError` for more messages or text than a batch may have, a `SyntaxError` for data that is no JSON.
 */
export function packBatch(items: readonly BatchItem[], about: { readonly historical: boolean }): Uint8Array {
  const text = Buffer.from(writeBatch(items, about));
  if (text.length > batch_text_max)
    throw new RangeError(`a batch of ${text.length} bytes; at most ${batch_text_max}`);
  return deflateSync(text, { level: deflate_level });
}

/**
 * The messages of a packed batch, by epoch and sequence number.
 * Throws what zlib throws, a `SyntaxError`, a `z.ZodError` or a `RangeError` when it is no batch or over a limit.
 */
export function unpackBatch(bytes: Uint8Array): BatchItem[] {
  return batchItems(openBatch(bytes));
}

/** Inflates and checks a packed batch without spelling out its messages. Throws as `unpackBatch`. */
export function openBatch(bytes: Uint8Array): Batch {
  return batch.parse(JSON.parse(inflateSync(bytes, { maxOutputLength: batch_text_max }).toString()));
}

/** The JSON text of a batch before compression. Throws as `packBatch`. */
export function writeBatch(items: readonly BatchItem[], about: { readonly historical: boolean }): string {
  if (items.length > batch_items_max) throw tooMany(items.length);
  return `{"v":1,"historical":${about.historical},"groups":[${group(items).map(writeGroup).join(',')}]}`;
}

interface Group {
  readonly head: BatchItem;
  /** Undefined: the data of these messages is kept as it is. */
  readonly keys: readonly string[] | undefined;
  readonly columns: readonly Json[][];
  readonly texts: string[];
  readonly seqs: number[];
  readonly times: number[];
}

function group(items: readonly BatchItem[]): Group[] {
  const byChannel = new Map<string, Group[]>();
  for (const item of items) {
    let siblings = byChannel.get(item.channel);
    if (!siblings) byChannel.set(item.channel, (siblings = []));
    add(item, siblings);
  }
  return [...byChannel.values()].flat();
}

function add(item: BatchItem, siblings: Group[]): void {
  const data: unknown = JSON.parse(item.data);
  const fields = isObject(data) ? data : undefined;
  const wanted = fields && Object.keys(fields);
  let found = siblings.find((sibling) => takes(sibling, item, wanted));
  if (!found) {
    const keys = siblings.length < column_groups_max ? wanted : undefined;
    found = siblings.find((sibling) => keys === undefined && takes(sibling, item, keys));
    if (!found) siblings.push((found = newGroup(item, keys)));
  }
  found.seqs.push(item.seq);
  found.times.push(Math.trunc(item.time_ms));
  found.texts.push(item.data);
  found.keys?.forEach((key, index) => found.columns[index]?.push(fields?.[key] ?? null));
}

function newGroup(head: BatchItem, keys: readonly string[] | undefined): Group {
  return { head, keys, columns: (keys ?? []).map(() => []), texts: [], seqs: [], times: [] };
}

function takes({ head, keys }: Group, item: BatchItem, wanted: readonly string[] | undefined): boolean {
  if (head.epoch !== item.epoch || head.time_quality !== item.time_quality) return false;
  if (!keys || !wanted) return keys === wanted;
  return keys.length === wanted.length && keys.every((key, index) => key === wanted[index]);
}

function isObject(data: unknown): data is Readonly<Record<string, Json>> {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

function writeGroup({ head, keys, columns, texts, seqs, times }: Group): string {
  const quality = head.time_quality ? `"q":"${head.time_quality}",` : '';
  const position = `"seq":${encodeDeltas(seqs)},"t":${encodeDeltas(times)}`;
  const start = `{"e":${head.epoch},"ch":${JSON.stringify(head.channel)},${quality}${position}`;
  // One message alone gains nothing from columns.
  if (!keys || texts.length === 1) return `${start},"v":[${texts.join(',')}]}`;
  return `${start},"k":${JSON.stringify(keys)},"c":[${columns.map(encodeColumn).join(',')}]}`;
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

function tooMany(count: number): RangeError {
  return new RangeError(`a batch of ${count} messages; at most ${batch_items_max}`);
}

function tooLong(): RangeError {
  return new RangeError(`a batch of more than ${unpacked_text_max} characters of data`);
}
