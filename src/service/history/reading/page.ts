/** One page of the messages of a kit. */
import { cursorAfter, type Place, readCursor } from './cursor.ts';
import type { HistoryStore } from '../history-store.ts';
import type { HistoryClass, HistoryMessage } from '../message.ts';
import { type Budget, newPause, readHistory } from './reader.ts';

export interface PageQuery {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** In place of a cursor: what follows this place. */
  readonly after?: Place | undefined;
  /** What else distinguishes the question from others, as the client gave it. */
  readonly filter: Readonly<Record<string, unknown>>;
  readonly isWanted: (channel: string) => boolean;
  /** Of the messages of wanted channels. */
  readonly isMatch?: ((message: HistoryMessage) => boolean) | undefined;
}

export interface Page {
  readonly messages: readonly HistoryMessage[];
  /** The cursor of the next page; null: this was the last. */
  readonly next: string | null;
}

/** Reads up to `limit` messages, fewer, or none, when the budget was spent: then `next` continues from there. */
export async function readPage(store: HistoryStore, query: PageQuery, budget: Budget): Promise<Page> {
  const { kit_id, classes, order, limit, isWanted, isMatch = () => true } = query;
  const question = [kit_id, classes, order, query.filter];
  const after = query.cursor === undefined ? query.after : readCursor(question, query.cursor);
  const stretch = { kit_id, classes, order, after, isWanted, ...spanAfter(query, after) };
  const messages: HistoryMessage[] = [];
  let last: HistoryMessage | undefined;
  const pause = newPause();
  for await (const message of readHistory(store, stretch, budget)) {
    await pause();
    const isFull = messages.length === limit || budget.chars_left <= 0;
    if (isFull) return { messages, next: cursorAfter(question, last ?? message) };
    last = message;
    budget.chars_left -= message.data.length;
    if (isMatch(message)) messages.push(message);
  }
  const { rest_ms } = budget;
  if (rest_ms === undefined) return { messages, next: null };
  return { messages, next: cursorAfter(question, last ?? placeBefore(rest_ms, order)) };
}

/** The place before all messages of this time, in the order. */
function placeBefore(time_ms: number, order: 'asc' | 'desc'): Place {
  const number = order === 'asc' ? -1 : Number.MAX_SAFE_INTEGER;
  return { time_ms, epoch: number, seq: number, channel: '' };
}

/** The part of the span that lies at the place or behind it. */
function spanAfter({ from_ms, to_ms, order }: PageQuery, after: Place | undefined) {
  if (!after) return { from_ms, to_ms };
  return order === 'asc'
    ? { from_ms: Math.max(from_ms, after.time_ms), to_ms }
    : { from_ms, to_ms: Math.min(to_ms, after.time_ms + 1) };
}
