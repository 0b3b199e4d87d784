/**
 * Messages of a kit in the order in which this service stored them: what comes late is behind the cursor of whoever has read all that
 * there was, however old it is. Nothing is skipped and nothing comes twice, whatever commits and the compactor do meanwhile.
 */
import type { HistoryStore, StoredLanded } from '../history-store.ts';
import { isErased, observedMs, type Tombstones } from '../erasure.ts';
import { byArrival, type HistoryClass, type HistoryMessage } from '../message.ts';
import { arrivedAt, arrivedMessages, messagesOfGroups, openSegment } from '../segment.ts';
import type { Place } from './cursor.ts';
import { type Budget, FirstOnes, isSpent, newFilter, wantedIn } from './reader.ts';

export interface ArrivalQuery {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  /** Of the observation. */
  readonly from_ms: number;
  readonly to_ms: number;
  readonly arrived_from?: number | undefined;
  readonly after?: Place | undefined;
  readonly limit: number;
  readonly isWanted: (channel: string) => boolean;
  readonly isMatch: (message: HistoryMessage) => boolean;
}

export interface ArrivalPage {
  readonly messages: readonly HistoryMessage[];
  /** Everything up to this place was given. */
  readonly end: Place;
  readonly more: boolean;
}

/** A page is read again when a segment of it was joined with others meanwhile: that happens to each now and then. */
const tries_max = 5;
const lowest = Number.MIN_SAFE_INTEGER;
const highest = Number.MAX_SAFE_INTEGER;

export async function readArrivals(
  store: HistoryStore,
  query: ArrivalQuery,
  budget: Budget,
): Promise<ArrivalPage> {
  for (let left = tries_max; left > 0; left -= 1) {
    const page = await readOnce(store, query, { ...budget });
    if (page) return page;
  }
  return { messages: [], end: query.after ?? placeBefore(query.arrived_from ?? 0), more: true };
}

/** Undefined: a segment is at another place now. */
async function readOnce(
  store: HistoryStore,
  query: ArrivalQuery,
  budget: Budget,
): Promise<ArrivalPage | undefined> {
  const found = await find(store, query);
  const { begin_ms, end_ms, after } = found;
  const page = new PageOfArrivals(query, budget);
  const first = new FirstOnes(byArrival);
  const add = (messages: readonly HistoryMessage[]): void => first.add(messages.filter(found.isHere));
  for (const each of found.landed) add(await landedMessages(each, query, { erased: found.erased, budget }));
  for (const { id, arrived_lo_ms } of found.segments) {
    if (page.isFullWith(first.take((message) => arrivalOf(message) < arrived_lo_ms)))
      return page.cut(page.last);
    if (arrived_lo_ms > begin_ms && isSpent(budget)) return page.cut(placeBefore(arrived_lo_ms));
    const body = await store.historySegment(query.kit_id, id);
    if (!body) return undefined;
    add(await arrivedMessages(wantedIn(await openSegment(body), query, budget)));
  }
  if (page.isFullWith(first.take(() => true))) return page.cut(page.last);
  if (first.end) return page.cut(page.last ?? placeBefore(arrivalOf(first.end)));
  const behind = placeBehind(end_ms);
  const end = byArrival(behind, after) > 0 ? behind : after;
  return { messages: page.messages, end, more: found.more };
}

/** Where the messages of a page are. */
async function find(store: HistoryStore, query: ArrivalQuery) {
  const { kit_id, classes, from_ms, to_ms, arrived_from = 0, after = placeBefore(arrived_from) } = query;
  // What has no place in this order has 0.
  const begin_ms = Math.max(after.arrived_ms ?? 0, 1);
  const { landed, to_ms: landed_to_ms, isCut } = await store.historyArrivals(kit_id, begin_ms);
  const erased = await store.historyErased(kit_id);
  const { segments, cut_ms = highest } = await store.historyArrivedSegments(kit_id, classes, begin_ms);
  const end_ms = Math.min(landed_to_ms, cut_ms);
  return {
    after,
    begin_ms,
    end_ms,
    landed,
    erased,
    segments: segments.filter(({ arrived_lo_ms }) => arrived_lo_ms <= end_ms),
    more: isCut || cut_ms < landed_to_ms,
    isHere: (message: HistoryMessage): boolean =>
      isBetween(arrivalOf(message), begin_ms, end_ms) &&
      isBetween(message.time_ms, from_ms, to_ms - 1) &&
      byArrival(message, after) > 0,
  };
}

function arrivalOf({ arrived_ms = 0 }: HistoryMessage): number {
  return arrived_ms;
}

async function landedMessages(
  { body, landed_ms, arrived_ms }: StoredLanded,
  query: ArrivalQuery,
  { erased, budget }: { readonly erased: Tombstones; readonly budget: Budget },
): Promise<readonly HistoryMessage[]> {
  const messages = await messagesOfGroups(wantedIn(await openSegment(body), query, budget));
  return messages
    .filter((message) => !isErased(erased, message, observedMs(message, landed_ms)))
    .map((message) => arrivedAt(message, arrived_ms));
}

class PageOfArrivals {
  readonly messages: HistoryMessage[] = [];
  readonly #query: Pick<ArrivalQuery, 'limit' | 'isMatch'>;
  readonly #budget: Budget;
  readonly #isNew = newFilter();
  /** The message that was looked at last. */
  last: HistoryMessage | undefined;

  constructor(query: Pick<ArrivalQuery, 'limit' | 'isMatch'>, budget: Budget) {
    this.#query = query;
    this.#budget = budget;
  }

  /** Takes messages in their order. True: the page is full, and these were not all. */
  isFullWith(messages: readonly HistoryMessage[]): boolean {
    for (const message of messages.filter(this.#isNew)) {
      if (this.messages.length === this.#query.limit || this.#budget.chars_left <= 0) return true;
      this.last = message;
      this.#budget.chars_left -= message.data.length;
      if (this.#query.isMatch(message)) this.messages.push(message);
    }
    return false;
  }

  cut(end: Place = placeBefore(0)): ArrivalPage {
    return { messages: this.messages, end, more: true };
  }
}

function isBetween(value: number, low: number, high: number): boolean {
  return value >= low && value <= high;
}

/** The place before everything that arrived then. */
export function placeBefore(arrived_ms: number): Place {
  return { arrived_ms, time_ms: lowest, epoch: 0, seq: 0, channel: '' };
}

/** The place behind it. */
export function placeBehind(arrived_ms: number): Place {
  return { arrived_ms, time_ms: highest, epoch: 0, seq: 0, channel: '' };
}

/** Whether everything that arrived then was given. */
export function isBehind({ time_ms }: Place): boolean {
  return time_ms === highest;
}
