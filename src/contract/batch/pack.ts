/**
 * Packs the body of `batch`: many messages in one, compressed. Messages of one channel and epoch with the same keys stand
 * together in a group, each key as a column, since neighbours of a column differ little. Free of schemas: the thread of
 * the buffer, which packs, has no use for them.
 */
import { deflateSync } from 'node:zlib';
import { BatchWriter, type BatchItem } from './writer.ts';

/** Messages in one batch. */
export const batch_items_max = 10_000;
/** Bytes of a batch before compression and once inflated. */
export const batch_text_max = 8 * 1024 * 1024;
/**
 * Columns leave little to search for: higher levels save a few hundredths and cost a tenth of the drain. Smaller tables
 * take less time to clear. A smaller window would too, but the first byte of a batch is part of the contract.
 */
export const deflate_options = { level: 3, memLevel: 7 } as const;

/**
 * Packs messages for `channels.batch`.
 * Throws a `RangeError` for more messages or text than a batch may have, a `SyntaxError` for data that is no JSON.
 */
export function packBatch(items: readonly BatchItem[], about: { readonly historical: boolean }): Uint8Array {
  return deflateSync(bytesOf(writeBatch(items, about)), deflate_options);
}

/** Compresses a batch of the backlog. Throws a `RangeError` for more text than a batch may have. */
export function packHistory(writer: BatchWriter): Uint8Array {
  return deflateSync(historyBytes(writer), deflate_options);
}

/** The bytes of a batch of the backlog before compression. Throws as `packHistory`. */
export function historyBytes(writer: BatchWriter): Uint8Array {
  return bytesOf(writer.write({ historical: true }));
}

/** The JSON text of a batch before compression. Throws as `packBatch`. */
export function writeBatch(items: readonly BatchItem[], about: { readonly historical: boolean }): string {
  if (items.length > batch_items_max) throw tooMany(items.length);
  const writer = new BatchWriter();
  for (const item of items) writer.add(item);
  return writer.write(about);
}

function bytesOf(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  if (bytes.length > batch_text_max)
    throw new RangeError(`a batch of ${bytes.length} bytes; at most ${batch_text_max}`);
  return bytes;
}

/** Refuses what is more than `batch_items_max`. */
export function tooMany(count: number): RangeError {
  return new RangeError(`a batch of ${count} messages; at most ${batch_items_max}`);
}
