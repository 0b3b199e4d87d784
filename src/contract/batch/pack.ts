/**
 * Packs the body of `batch`: many messages in one, compressed. Messages of one channel and epoch with the same keys stand
 * together in a group, each key as a column, since neighbours of a column differ little. Free of schemas: the thread of
 * the buffer, which packs, has no use for them.
 */
import { deflateSync } from 'node:zlib';
import { encodeDeltas } from './deltas.ts';
import { encodeColumn } from './encode.ts';
import { ScannedRows } from './scan.ts';
import type { Observed } from '../envelope.ts';
import type { Json } from '../json.ts';

/** Messages in one batch. */
export const batch_items_max = 10_000;
/** Bytes of a batch before compression and once inflated. */
export const batch_text_max = 8 * 1024 * 1024;
/** Groups of one channel that have columns; what is more varied is kept as it is. */
const column_groups_max = 16;
/**
 * Columns leave little to search for: higher levels save a few hundredths and cost a tenth of the drain. Smaller tables
 * take less time to clear. A smaller window would too, but the first byte of a batch is part of the contract.
 */
export const deflate_options = { level: 3, memLevel: 7 } as const;

/** One message of a batch. `data` is JSON text; `null` stands for the empty payload that clears a retained topic. */
export interface BatchItem extends Observed {
  /** The topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  readonly data: string;
}

/**
 * Packs messages for `channels.batch`.
 * Throws a `RangeError` for more messages or text than a batch may have, a `SyntaxError` for data that is no JSON.
 */
export function packBatch(items: readonly BatchItem[], about: { readonly historical: boolean }): Uint8Array {
  return deflateSync(batchBytes(items, about), deflate_options);
}

/** The bytes of a batch before compression. Throws as `packBatch`. */
export function batchBytes(items: readonly BatchItem[], about: { readonly historical: boolean }): Uint8Array {
  const text = Buffer.from(writeBatch(items, about));
  if (text.length > batch_text_max)
    throw new RangeError(`a batch of ${text.length} bytes; at most ${batch_text_max}`);
  return text;
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
  readonly texts: string[];
  readonly seqs: number[];
  readonly times: number[];
  /** The data, as long as it could be read without parsing it. */
  scanned: ScannedRows | undefined;
}

function group(items: readonly BatchItem[]): Group[] {
  const byChannel = new Map<string, Group[]>();
  for (const item of items) {
    let siblings = byChannel.get(item.channel);
    if (!siblings) byChannel.set(item.channel, (siblings = []));
    const { seqs, times, texts } = groupOf(item, siblings);
    seqs.push(item.seq);
    times.push(Math.trunc(item.time_ms));
    texts.push(item.data);
  }
  return [...byChannel.values()].flat();
}

/** The group that takes the message, a new one if there is none; its scanned rows hold the data by now. */
function groupOf(item: BatchItem, siblings: Group[]): Group {
  for (const sibling of siblings) if (isOf(sibling, item) && sibling.scanned?.add(item.data)) return sibling;
  const data: unknown = JSON.parse(item.data);
  const wanted = isObject(data) ? Object.keys(data) : undefined;
  const keys = siblings.length < column_groups_max ? wanted : undefined;
  const found =
    siblings.find((sibling) => takes(sibling, item, wanted)) ??
    siblings.find((sibling) => keys === undefined && takes(sibling, item, keys));
  if (found) {
    found.scanned = undefined;
    return found;
  }
  const fresh = newGroup(item, keys);
  siblings.push(fresh);
  return fresh;
}

function newGroup(head: BatchItem, keys: readonly string[] | undefined): Group {
  const rows = keys && keys.length > 0 ? new ScannedRows(keys) : undefined;
  const scanned = rows?.add(head.data) ? rows : undefined;
  return { head, keys, texts: [], seqs: [], times: [], scanned };
}

function isOf({ head }: Group, item: BatchItem): boolean {
  return head.epoch === item.epoch && head.time_quality === item.time_quality;
}

function takes(sibling: Group, item: BatchItem, wanted: readonly string[] | undefined): boolean {
  const { keys } = sibling;
  if (!isOf(sibling, item)) return false;
  if (!keys || !wanted) return keys === wanted;
  return keys.length === wanted.length && keys.every((key, index) => key === wanted[index]);
}

function isObject(data: unknown): data is Readonly<Record<string, Json>> {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

function writeGroup({ head, keys, scanned, texts, seqs, times }: Group): string {
  const quality = head.time_quality ? `"q":"${head.time_quality}",` : '';
  const position = `"seq":${encodeDeltas(seqs)},"t":${encodeDeltas(times)}`;
  const start = `{"e":${head.epoch},"ch":${JSON.stringify(head.channel)},${quality}${position}`;
  // One message alone gains nothing from columns.
  if (!keys || texts.length === 1) return `${start},"v":[${texts.join(',')}]}`;
  const columns = scanned?.write() ?? parsedColumns(keys, texts);
  return `${start},"k":${JSON.stringify(keys)},"c":[${columns.join(',')}]}`;
}

function parsedColumns(keys: readonly string[], texts: readonly string[]): readonly string[] {
  const rows = texts.map((text): unknown => JSON.parse(text));
  return keys.map((key) => encodeColumn(rows.map((row) => (isObject(row) ? (row[key] ?? null) : null))));
}

/** Refuses what is more than `batch_items_max`. */
export function tooMany(count: number): RangeError {
  return new RangeError(`a batch of ${count} messages; at most ${batch_items_max}`);
}
