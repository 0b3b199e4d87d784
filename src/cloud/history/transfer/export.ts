/** Writes the history of kits as lines that `import.ts` reads into another service. */
import { isErased, observedMs } from '../erasure.ts';
import { history_classes, type HistoryMessage } from '../message.ts';
import type { HistoryStore, StoredSegment } from '../history-store.ts';
import { isMisdated } from '../retention.ts';
import { messagesOf } from '../segment.ts';
import { writeKitLine, writeMessageLine, writeRecordLines } from './lines.ts';
import { day_ms } from '../../../platform/time.ts';

/** Segments of one statement. */
const segments_at_once = 8;

/**
 * The lines of a kit, in portions of one segment. A message that is divided meanwhile may be written twice, which an import
 * notices; none is left out. The numbers are read before the messages: what arrives meanwhile does not count as received.
 * `left`: kits of the file after this one.
 */
export async function* exportKit(
  store: HistoryStore,
  kit_id: string,
  left: number,
): AsyncGenerator<string, void, undefined> {
  const record = await store.historyRecord(kit_id);
  yield writeKitLine(kit_id, left);
  let count = 0;
  const linesOf = (messages: readonly HistoryMessage[], arrivedOf: ArrivedOf): string => {
    count += messages.length;
    return messages.map((message) => writeMessageLine(message, arrivedOf(message))).join('');
  };
  const landed = await store.historyLanded(kit_id);
  const erased = await store.historyErased(kit_id);
  for (const { landed_ms, body } of landed) {
    const messages = await messagesOf(body);
    const kept = messages.filter((message) => !isErased(erased, message, observedMs(message, landed_ms)));
    yield linesOf(kept, (message) => (isMisdated(message, landed_ms) ? landed_ms : undefined));
  }
  for await (const { body, day, misdated } of segmentsOf(store, kit_id)) {
    yield linesOf(await messagesOf(body), () => (misdated ? day * day_ms : undefined));
  }
  yield* writeRecordLines(record, count);
}

type ArrivedOf = (message: HistoryMessage) => number | undefined;

async function* segmentsOf(
  store: HistoryStore,
  kit_id: string,
): AsyncGenerator<StoredSegment, void, undefined> {
  const all = {
    kit_id,
    classes: history_classes,
    from_ms: Number.MIN_SAFE_INTEGER,
    to_ms: Number.MAX_SAFE_INTEGER,
  };
  for (let after: { readonly ms: number; readonly id: string } | undefined; ;) {
    const some = await store.historySegments({ ...all, order: 'asc', after, limit: segments_at_once });
    yield* some;
    const last = some.length === segments_at_once ? some.at(-1) : undefined;
    if (!last) return;
    after = { ms: last.lo_ms, id: last.id };
  }
}
