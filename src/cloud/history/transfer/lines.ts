/**
 * The lines of an export, NDJSON: for each kit a first line that names it, its messages, what is known beside them, and a last
 * line, so that a cut file is noticed.
 */
import { z } from 'zod';
import { json } from '../../../contract/json.ts';
import type { HistoryMessage } from '../message.ts';
import type { KitRecord } from '../record.ts';

/** Rises when an older version cannot read a file. */
export const format_version = 1;
/** Characters of a line: the numbers of an epoch whose holes are as many as the service keeps. */
export const line_chars_max = 16 * 1024 * 1024;

const count = z.int().nonnegative();
const time = z.iso.datetime();
const kitLine = z.object({
  format: z.literal('kit-connector-history'),
  version: count,
  kit_id: z.uuid(),
  /** Kits of the file after this one: a file that was cut between two of them is noticed. */
  left: count.optional(),
});
const messageLine = z.object({
  time,
  time_quality: z.literal('unsynced').optional(),
  /** When it arrived, where its own time is not that of the observation. */
  arrived: time.optional(),
  channel: z.string(),
  epoch: count,
  seq: count,
  data: json,
});
const receivedLine = z.object({
  received: z.object({ epoch: count, ranges: z.array(z.tuple([count, count])) }),
});
const droppedLine = z.object({ dropped: z.object({ epoch: count, rows: count }) });
const holeLine = z.object({
  hole: z.object({
    epoch: count,
    lo: count,
    hi: count,
    lane: z.string(),
    reason: z.string(),
    messages: count,
    reported_ms: count,
  }),
});
const erasedLine = z.object({ erased: z.object({ asset_id: z.string(), before_ms: z.number() }) });
const endLine = z.object({ end: z.object({ since_ms: count.nullable(), messages: count }) });

export const exportLine = z.union([
  messageLine,
  receivedLine,
  holeLine,
  droppedLine,
  erasedLine,
  endLine,
  kitLine,
]);
export type ExportLine = z.output<typeof exportLine>;

/** `left`: kits of the file after this one. */
export function writeKitLine(kit_id: string, left: number): string {
  const head = { format: 'kit-connector-history', version: format_version } as const;
  const line: z.output<typeof kitLine> = { ...head, kit_id, left };
  return `${JSON.stringify(line)}\n`;
}

/** `arrived_ms`: left out where the time is that of the observation. */
export function writeMessageLine(message: HistoryMessage, arrived_ms: number | undefined): string {
  const { time_ms, unsynced, channel, epoch, seq, data } = message;
  const head = {
    time: iso(time_ms),
    ...(unsynced && { time_quality: 'unsynced' }),
    ...(arrived_ms !== undefined && { arrived: iso(arrived_ms) }),
    channel,
    epoch,
    seq,
  };
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}\n`;
}

/** The lines after the messages of a kit. */
export function* writeRecordLines(record: KitRecord, messages: number): Iterable<string> {
  const { since_ms, received, dropped, holes, erased } = record;
  for (const each of received) yield `${JSON.stringify({ received: each })}\n`;
  for (const each of dropped) yield `${JSON.stringify({ dropped: each })}\n`;
  for (const each of holes) yield `${JSON.stringify({ hole: each })}\n`;
  for (const each of erased) yield `${JSON.stringify({ erased: each })}\n`;
  yield `${JSON.stringify({ end: { since_ms, messages } })}\n`;
}

/** The lines of a file. A line without an end is given in parts of `line_chars_max`, which no reader accepts as a line. */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
    if (rest.length <= line_chars_max) continue;
    yield rest;
    rest = '';
  }
  if (rest !== '') yield rest;
}

function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}
