/** Reads the lines of an export into a service. Repeated, also after it broke off, it adds what is not there yet. */
import type { HistoryStore } from '../history-store.ts';
import type { HistoryMessage } from '../message.ts';
import { past_ms } from '../retention.ts';
import { exportLine, type ExportLine, format_version, line_chars_max } from './lines.ts';
import type { KitRecord } from '../record.ts';
import { texts } from './texts.ts';

/** Messages of one transaction. */
const messages_at_once = 2_000;
/** Characters of their bodies: large messages are imported in smaller transactions. */
export const chars_at_once = 8 * 1024 * 1024;
/** Messages of one transaction arrive at the same time, which must not be far from any of them. */
const span_max_ms = past_ms / 2;

export interface Imported {
  readonly kits: number;
  /** Lines with messages, including already known ones. */
  readonly messages: number;
}

/** The file is not whole, or is no export. What was read before is imported. */
export class ExportUnreadable extends Error {}

type Records = { -readonly [K in keyof Omit<KitRecord, 'since_ms'>]: KitRecord[K][number][] };

interface Kit {
  readonly kit_id: string;
  readonly record: Records;
  messages: number;
  waiting: HistoryMessage[];
  /** Of the bodies of the waiting ones. */
  waiting_chars: number;
  /** When the waiting ones arrived; undefined: at the time of the last of them. */
  arrived_ms: number | undefined;
}

/** `now`: clock of the service, milliseconds since 1970. Rejects with `ExportUnreadable`. */
export async function importLines(
  store: HistoryStore,
  lines: AsyncIterable<string>,
  now: () => number,
): Promise<Imported> {
  let kit: Kit | undefined;
  let kits = 0;
  let left = 0;
  let messages = 0;
  let number = 0;
  for await (const text of lines) {
    number += 1;
    if (text === '') continue;
    const line = readLine(text, number);
    if ('format' in line) {
      kit = begin(line, kit);
      left = line.left ?? 0;
      continue;
    }
    if (!kit) throw new ExportUnreadable(texts.no_kit_line(number));
    if ('end' in line) {
      await flush(store, kit);
      if (line.end.messages !== kit.messages) throw new ExportUnreadable(texts.ends_early(kit.kit_id));
      await store.importRecord(kit.kit_id, { ...kit.record, since_ms: line.end.since_ms }, now());
      kits += 1;
      messages += kit.messages;
      kit = undefined;
    } else if ('time' in line) await take(store, kit, line);
    else note(kit.record, line);
  }
  if (kit) throw new ExportUnreadable(texts.ends_early(kit.kit_id));
  if (left > 0) throw new ExportUnreadable(texts.kits_missing(left));
  if (kits === 0) throw new ExportUnreadable(texts.no_kit_line(1));
  return { kits, messages };
}

/** The kit whose lines follow; `before`: one whose lines have not ended. */
function begin({ kit_id, version }: Extract<ExportLine, { format: string }>, before: Kit | undefined): Kit {
  if (before) throw new ExportUnreadable(texts.ends_early(before.kit_id));
  if (version > format_version) throw new ExportUnreadable(texts.later_version(version));
  const record: Records = { received: [], dropped: [], holes: [], erased: [] };
  return {
    kit_id,
    record,
    messages: 0,
    waiting: [],
    waiting_chars: 0,
    arrived_ms: undefined,
  };
}

function readLine(text: string, number: number): ExportLine {
  if (text.length > line_chars_max) throw new ExportUnreadable(texts.line_too_long(number, line_chars_max));
  try {
    const read = exportLine.safeParse(JSON.parse(text));
    if (read.success) return read.data;
  } catch {
    // No JSON: reported below.
  }
  throw new ExportUnreadable(texts.line_unreadable(number));
}

type MessageLine = Extract<ExportLine, { time: string }>;
type RecordLine = Exclude<ExportLine, MessageLine | { format: string } | { end: unknown }>;

function note(record: Records, line: RecordLine): void {
  if ('received' in line) record.received.push(line.received);
  else if ('dropped' in line) record.dropped.push(line.dropped);
  else if ('hole' in line) record.holes.push(line.hole);
  else record.erased.push(line.erased);
}

async function take(store: HistoryStore, kit: Kit, line: MessageLine): Promise<void> {
  const { time, time_quality, arrived, channel, epoch, seq, data } = line;
  const time_ms = Date.parse(time);
  const arrived_ms = arrived === undefined ? undefined : Date.parse(arrived);
  const first_ms = kit.waiting[0]?.time_ms ?? time_ms;
  const isOther = arrived_ms !== kit.arrived_ms || Math.abs(time_ms - first_ms) > span_max_ms;
  const isFull = kit.waiting.length >= messages_at_once || kit.waiting_chars >= chars_at_once;
  if (isFull || isOther) await flush(store, kit);
  kit.arrived_ms = arrived_ms;
  const unsynced = time_quality === 'unsynced';
  const body = JSON.stringify(data);
  kit.waiting.push({ channel, epoch, seq, time_ms, unsynced, data: body });
  kit.waiting_chars += body.length;
  kit.messages += 1;
}

/** Stores the lines that are buffered. */
async function flush(store: HistoryStore, kit: Kit): Promise<void> {
  const { kit_id, waiting, arrived_ms } = kit;
  if (waiting.length === 0) return;
  kit.waiting = [];
  kit.waiting_chars = 0;
  const newest_ms = waiting.reduce((newest, { time_ms }) => Math.max(newest, time_ms), 0);
  await store.importMessages(kit_id, waiting, arrived_ms ?? newest_ms);
}
