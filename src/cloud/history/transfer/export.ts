/** Writes the history of kits as lines that `import.ts` reads into another service. */
import { isErased, observedMs } from '../erasure.ts';
import { history_classes, type HistoryMessage } from '../message.ts';
import type { HistoryStore } from '../history-store.ts';
import { segmentsOf } from '../reading/reader.ts';
import { isMisdated } from '../retention.ts';
import { messagesOf } from '../segment.ts';
import { writeKitLine, writeMessageLine, writeRecordLines } from './lines.ts';
import { day_ms } from '../../../platform/time.ts';

const everything = {
  classes: history_classes,
  from_ms: Number.MIN_SAFE_INTEGER,
  to_ms: Number.MAX_SAFE_INTEGER,
  order: 'asc',
} as const;

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
  for await (const { body, day, misdated } of segmentsOf(store, { kit_id, ...everything })) {
    yield linesOf(await messagesOf(body), () => (misdated ? day * day_ms : undefined));
  }
  yield* writeRecordLines(record, count);
}

type ArrivedOf = (message: HistoryMessage) => number | undefined;
