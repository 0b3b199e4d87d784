/** Where the next page of a history begins: after a message, for the same question. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RequestProblem } from '../../api/problem.ts';
import { byTime, type HistoryMessage } from '../message.ts';
import { texts } from '../../texts.ts';

/** The place of a message in the order of a history. */
export interface Place extends Pick<HistoryMessage, 'time_ms' | 'epoch' | 'seq' | 'channel' | 'arrived_ms'> {
  /** In the order of the events of several kits. */
  readonly kit_id?: string | undefined;
}

const stored = z.tuple(
  [z.literal(1), z.string(), z.number(), z.int(), z.int(), z.string().max(256)],
  // The kit, of several; the place in the order of arrival, in that order.
  z.union([z.uuid(), z.number()]),
);
/** The places of a hundred kits in the order of arrival. */
export const cursor_chars_max = 4_096;

/** `question`: everything that the pages have in common. */
export function cursorAfter(question: unknown, place_after: Place): string {
  const { time_ms, epoch, seq, channel, kit_id, arrived_ms } = place_after;
  const rest = [kit_id, arrived_ms].filter((each) => each !== undefined);
  const place = [time_ms, epoch, seq, channel, ...rest];
  return Buffer.from(JSON.stringify([1, hashOf(question), ...place])).toString('base64url');
}

/** Throws `bad-request` when it is no cursor, or one of another question. */
export function readCursor(question: unknown, cursor: string): Place {
  const read = stored.safeParse(parsed(cursor));
  if (!read.success) throw new RequestProblem('bad-request', texts.foreign_cursor);
  const [, hash, time_ms, epoch, seq, channel, ...rest] = read.data;
  if (hash !== hashOf(question)) {
    throw new RequestProblem('bad-request', texts.cursor_of_other);
  }
  const kit_id = rest.find((each) => typeof each === 'string');
  return { time_ms, epoch, seq, channel, kit_id, arrived_ms: rest.find((each) => typeof each === 'number') };
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
