/** One page of the messages of a kit. */
import type { HistoryStore } from '../history-store.ts';
import { byTime, type HistoryClass, type HistoryMessage } from '../message.ts';
import { cursorAfter, type Place, readCursor } from './cursor.ts';
import { readArrivals } from './arrivals.ts';
import { type Budget, newPause, page_chars_max, readHistory } from './reader.ts';

export interface PageQuery {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  readonly order: Order;
  /** In the order of arrival: what arrived from then on. */
  readonly arrived_from?: number | undefined;
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
  /** In the order of arrival, where no page is the last: whether there is more now. */
  readonly more?: boolean | undefined;
  /** And the place up to which everything was given. */
  readonly end?: Place | undefined;
}

export type Order = 'asc' | 'desc' | 'arrival';

/** Reads up to `limit` messages, fewer, or none, when the budget was spent: then `next` continues from there. */
export async function readPage(store: HistoryStore, query: PageQuery, budget: Budget): Promise<Page> {
  const { kit_id, classes, order, limit, isWanted, isMatch = () => true } = query;
  const question = [kit_id, classes, order, query.filter];
  const after = query.cursor === undefined ? query.after : readCursor(question, query.cursor);
  if (order === 'arrival') {
    const { end, ...page } = await readArrivals(store, { ...query, isMatch, after }, budget);
    return { ...page, end, next: cursorAfter(question, end) };
  }
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
function placeBefore(time_ms: number, order: ByTime): Place {
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

export interface FleetMessage {
  readonly kit_id: string;
  readonly message: HistoryMessage;
}

/** The first of these that fit into an answer: so many, of limited size, and at least one. */
export function fitting(all: readonly FleetMessage[], limit: number): readonly FleetMessage[] {
  let chars = 0;
  const excess = all.findIndex(({ message }, index) => {
    chars += message.data.length;
    return index === limit || (index > 0 && chars > page_chars_max);
  });
  return excess < 0 ? all : all.slice(0, excess);
}

type ByTime = Exclude<Order, 'arrival'>;

/** The newest, or oldest, events of several kits, read one kit after the other: two pages are in memory at most. */
export class FleetEvents {
  readonly #sign: number;
  readonly #limit: number;
  #kept: readonly FleetMessage[] = [];
  /** Behind it, some kit may have events that were not read or not kept: none are given there. */
  #end: FleetMessage | undefined;

  constructor({ order, limit }: { readonly order: ByTime; readonly limit: number }) {
    this.#sign = order === 'asc' ? 1 : -1;
    this.#limit = limit;
  }

  /** In order: `limit` at most, fewer when their data is large. */
  get events(): readonly FleetMessage[] {
    return this.#kept;
  }

  /** The last one that is given, where more may follow; undefined: these are all. */
  get next(): Place | undefined {
    const last = this.#end && this.#kept.at(-1);
    return last && { ...last.message, kit_id: last.kit_id };
  }

  /** Takes the first page of a kit. Returns false when so much was read before the first event that nothing can be said. */
  add(kit_id: string, { messages, next }: Page): boolean {
    const own = messages.map((message) => ({ kit_id, message }));
    const last = own.at(-1);
    if (next !== null) {
      if (!last) return false;
      this.#endAt(last);
    }
    const all = [...this.#kept, ...own]
      .filter((each) => this.#end === undefined || this.#compare(each, this.#end) <= 0)
      .sort((a, b) => this.#compare(a, b));
    this.#kept = fitting(all, this.#limit);
    const cut = this.#kept.at(-1);
    if (this.#kept.length < all.length && cut) this.#endAt(cut);
    return true;
  }

  #endAt(event: FleetMessage): void {
    if (this.#end === undefined || this.#compare(event, this.#end) < 0) this.#end = event;
  }

  #compare(a: FleetMessage, b: FleetMessage): number {
    const difference = a.message.time_ms - b.message.time_ms || compareText(a.kit_id, b.kit_id);
    return this.#sign * (difference || byTime(a.message, b.message));
  }
}

/** Where the events of a kit go on that follow this place of all kits: their order is by time, then by kit. */
export function placeIn(kit_id: string, after: Place, order: ByTime): Place {
  if (after.kit_id === undefined || kit_id === after.kit_id) return after;
  // Of the same time, the kits before it were given whole, and those behind it not at all.
  const isGiven = compareText(kit_id, after.kit_id) < 0 === (order === 'asc');
  const number = isGiven === (order === 'asc') ? Number.MAX_SAFE_INTEGER : -1;
  return { time_ms: after.time_ms, epoch: number, seq: number, channel: '' };
}

export function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
