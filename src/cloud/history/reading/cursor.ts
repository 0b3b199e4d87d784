/** Where the next page of a history begins: after a message, for the same question. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RequestProblem } from '../../api/problem.ts';
import { byTime, type HistoryMessage } from '../message.ts';
import { texts } from '../../texts.ts';

/** The place of a message in the order of a history. */
export interface Place extends Pick<HistoryMessage, 'time_ms' | 'epoch' | 'seq' | 'channel'> {
  /** In the order of the events of several kits. */
  readonly kit_id?: string | undefined;
}

const stored = z.tuple(
  [z.literal(1), z.string(), z.number(), z.int(), z.int(), z.string().max(256)],
  z.uuid(),
);
const cursor_chars_max = 1_024;

/** `question`: everything that the pages have in common. */
export function cursorAfter(question: unknown, { time_ms, epoch, seq, channel, kit_id }: Place): string {
  const place = [time_ms, epoch, seq, channel, ...(kit_id === undefined ? [] : [kit_id])];
  return Buffer.from(JSON.stringify([1, hashOf(question), ...place])).toString('base64url');
}

/** Throws `bad-request` when it is no cursor, or one of another question. */
export function readCursor(question: unknown, cursor: string): Place {
  const read = stored.safeParse(parsed(cursor));
  if (!read.success) throw new RequestProblem('bad-request', texts.foreign_cursor);
  const [, hash, time_ms, epoch, seq, channel, kit_id] = read.data;
  if (hash !== hashOf(question)) {
    throw new RequestProblem('bad-request', texts.cursor_of_other);
  }
  return { time_ms, epoch, seq, channel, kit_id };
}

/** Whether the message follows the place, in this order. */
export function isAfter(message: HistoryMessage, place: Place, order: 'asc' | 'desc'): boolean {
  const difference = byTime(message, place);
  return order === 'asc' ? difference > 0 : difference < 0;
}

function parsed(cursor: string): unknown {
  if (cursor.length > cursor_chars_max) return undefined;
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}

function hashOf(question: unknown): string {
  return createHash('sha256').update(JSON.stringify(question)).digest('base64url').slice(0, 12);
}
