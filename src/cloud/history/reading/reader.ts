/** Reads a stretch of the history of one kit, in order, from segments and from what has landed, each message once. */
import type { HistoryStore, StoredSegment } from '../history-store.ts';
import {
  byTime,
  classOf,
  type HistoryClass,
  type HistoryMessage,
  history_classes,
  identityOf,
} from '../message.ts';
import { turn, turnEvery } from '../../../platform/time.ts';
import { isErased, observedMs, type Tombstones } from '../erasure.ts';
import { isMisdated } from '../retention.ts';
import { isAfter, type Place } from './cursor.ts';
import { type Group, messagesOfGroups, openSegment } from '../segment.ts';

/** What one request may cost. */
export interface Budget {
  /** Messages that may still be looked at. */
  messages_left: number;
  /** Characters of data that a page may still hold. */
  chars_left: number;
  /** By `performance.now()`. */
  readonly until_ms: number;
  /** Set where reading ended early: all messages before this time (behind it, in the reverse order) were given. */
  rest_ms?: number;
}

export const request_messages_max = 1_000_000;
const request_time_ms = 2_000;
/** Characters of data of one page, all of which is held until its client has read it: 5,000 messages may have more than a gigabyte. */
export const page_chars_max = 2 * 1024 * 1024;
/** Characters of data kept while the first messages are looked for: a message may be there twice, as landed and in a segment. */
const kept_chars_max = 2 * page_chars_max;
/** Messages that are read in one turn of the event loop. */
const turn_messages = 500;

export function newBudget(chars_left = page_chars_max): Budget {
  return {
    messages_left: request_messages_max,
    chars_left,
    until_ms: performance.now() + request_time_ms,
  };
}

export function isSpent({ messages_left, chars_left, until_ms }: Budget): boolean {
  return messages_left <= 0 || chars_left <= 0 || performance.now() > until_ms;
}

/** Awaited for each of many messages, or with their number: lets others have a turn now and then. */
export function newPause(): (messages?: number) => Promise<void> {
  return turnEvery(turn_messages);
}

export interface Stretch {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  readonly order: 'asc' | 'desc';
  /** Only what follows this place in that order. */
  readonly after?: Place | undefined;
  /** Only groups of these channels; left out: all. */
  readonly isWanted?: ((channel: string) => boolean) | undefined;
}

/** Segments of one statement: decoded one by one, with a turn for others between. */
const segments_at_once = 8;

/**
 * The messages of the stretch in the order of `byTime`, or in the reverse order. When the budget is spent (`isSpent`) it ends early and
 * sets `rest_ms`, but not before it has come forward: else who continues from there would never get any further.
 */
export async function* readHistory(
  store: HistoryStore,
  stretch: Stretch,
  budget: Budget,
): AsyncGenerator<HistoryMessage, void, undefined> {
  const { order, from_ms, to_ms } = stretch;
  const sign = order === 'asc' ? 1 : -1;
  const first = new FirstOnes((a, b) => sign * byTime(a, b));
  const isNew = newFilter();
  // What has landed is read first: a message that moves into a segment meanwhile is seen twice then, never not at all.
  await readLanded(store, stretch, budget, first);
  let [given, opened] = [0, 0];
  for await (const segment of segmentsOf(store, stretch)) {
    // Nothing that follows lies before this edge.
    const edge_ms = order === 'asc' ? segment.lo_ms : segment.hi_ms;
    const ready = first.take(({ time_ms }) => sign * (time_ms - edge_ms) < 0).filter(isNew);
    given += ready.length;
    yield* ready;
    const isForward = given > 0 || (order === 'asc' ? edge_ms > from_ms : edge_ms < to_ms - 1);
    if (opened > 0 && isForward && isSpent(budget)) {
      budget.rest_ms = edge_ms;
      return;
    }
    opened += 1;
    first.add(await messagesIn(await openSegment(segment.body), stretch, budget));
  }
  yield* first.take(() => true).filter(isNew);
  if (first.end) budget.rest_ms = first.end.time_ms;
}

/** Keeps the first messages of a stretch, up to `kept_chars_max`; the next page reads the others again. */
export class FirstOnes {
  readonly #compare: (a: HistoryMessage, b: HistoryMessage) => number;
  #found: HistoryMessage[] = [];
  #chars = 0;
  #end: HistoryMessage | undefined;

  constructor(compare: (a: HistoryMessage, b: HistoryMessage) => number) {
    this.#compare = compare;
  }

  /** The first message that was dropped; undefined: none was. */
  get end(): HistoryMessage | undefined {
    return this.#end;
  }

  add(messages: readonly HistoryMessage[]): void {
    for (const message of messages) {
      if (this.#end && this.#compare(message, this.#end) >= 0) continue;
      this.#found.push(message);
      this.#chars += message.data.length;
    }
    if (this.#chars > kept_chars_max + page_chars_max) this.#drop();
  }

  /** Takes those at the beginning that are ready, in order. */
  take(isReady: (message: HistoryMessage) => boolean): readonly HistoryMessage[] {
    this.#found.sort(this.#compare);
    const end = this.#found.findIndex((message) => !isReady(message));
    const taken = this.#found.splice(0, end < 0 ? this.#found.length : end);
    for (const { data } of taken) this.#chars -= data.length;
    return taken;
  }

  #drop(): void {
    this.#found.sort(this.#compare);
    let chars = 0;
    const end = this.#found.findIndex(({ data }) => (chars += data.length) > kept_chars_max);
    this.#end = this.#found[end];
    this.#found = this.#found.slice(0, end);
    this.#chars = this.#found.reduce((sum, { data }) => sum + data.length, 0);
  }
}

/** Whether a message is another one than the one before: copies follow each other in the order of time. */
export function newFilter(): (message: HistoryMessage) => boolean {
  let before: HistoryMessage | undefined;
  return (message) => {
    const isSame = before?.time_ms === message.time_ms && identityOf(before) === identityOf(message);
    before = message;
    return !isSame;
  };
}

/**
 * The groups of what has landed, for figures that need no order, without messages whose times are no times of observation. Read
 * them before those of the segments.
 */
export async function* landedGroups(
  store: HistoryStore,
  stretch: Stretch,
  budget: Budget,
): AsyncGenerator<Group, void, undefined> {
  const { landed, erased } = await landedOf(store, stretch.kit_id);
  const pause = newPause();
  for (const { body, landed_ms } of landed) {
    const groups = await openSegment(body);
    await pause(messagesOfAll(groups));
    for (const group of wantedIn(groups, stretch, budget)) yield usable(group, landed_ms, erased);
  }
}

function messagesOfAll(groups: readonly Group[]): number {
  return groups.reduce((sum, { seqs }) => sum + seqs.length, 0);
}

/** The group without what is misdated or erased. */
function usable(group: Group, landed_ms: number, erased: Tombstones): Group {
  const { channel, unsynced, seqs, times_ms, valuesOf, textOf } = group;
  const kept = [...times_ms.keys()].filter((at) => {
    const time_ms = times_ms[at] ?? 0;
    return (
      !isMisdated({ time_ms, unsynced }, landed_ms) &&
      !(erased.size > 0 && isErased(erased, { channel, data: textOf(at) }, time_ms))
    );
  });
  if (kept.length === times_ms.length) return group;
  return {
    ...group,
    seqs: kept.map((at) => seqs[at] ?? 0),
    times_ms: kept.map((at) => times_ms[at] ?? 0),
    valuesOf: (key) => {
      const values = valuesOf(key);
      return values && kept.map((at) => values[at]);
    },
    textOf: (index) => textOf(kept[index] ?? 0),
  };
}

/** The groups of the segments of a stretch, without those whose times are no times of observation. */
export async function* segmentGroups(
  store: HistoryStore,
  stretch: Stretch,
  budget: Budget,
): AsyncGenerator<Group, void, undefined> {
  for await (const { body, misdated } of segmentsOf(store, stretch)) {
    if (isSpent(budget)) return;
    if (!misdated) yield* wantedIn(await openSegment(body), stretch, budget);
  }
}

/** Those that may hold messages of the stretch, in its order. */
export async function* segmentsOf(
  store: HistoryStore,
  stretch: Pick<Stretch, 'kit_id' | 'classes' | 'from_ms' | 'to_ms' | 'order'>,
): AsyncGenerator<StoredSegment, void, undefined> {
  const { kit_id, classes, from_ms, to_ms, order } = stretch;
  let after: { readonly ms: number; readonly id: string } | undefined;
  do {
    const asked = { kit_id, classes, from_ms, to_ms, order, after };
    const some = await store.historySegments({ ...asked, limit: segments_at_once });
    for (const segment of some) {
      yield segment;
      await turn();
    }
    const last = some.length === segments_at_once ? some.at(-1) : undefined;
    after = last && { ms: order === 'asc' ? last.lo_ms : last.hi_ms, id: last.id };
  } while (after);
}

async function readLanded(
  store: HistoryStore,
  stretch: Stretch,
  budget: Budget,
  first: FirstOnes,
): Promise<void> {
  const { landed, erased } = await landedOf(store, stretch.kit_id);
  const pause = newPause();
  for (const { body, landed_ms } of landed) {
    const groups = await openSegment(body);
    await pause(messagesOfAll(groups));
    const messages = await messagesIn(groups, stretch, budget);
    first.add(messages.filter((message) => !isErased(erased, message, observedMs(message, landed_ms))));
  }
}

/** Landed and erased messages: a message observed before an erasure may arrive after it. */
async function landedOf(store: HistoryStore, kit_id: string) {
  const [landed, erased] = await Promise.all([store.historyLanded(kit_id), store.historyErased(kit_id)]);
  return { landed, erased };
}

export function wantedIn(
  groups: readonly Group[],
  { classes, isWanted }: Pick<Stretch, 'classes' | 'isWanted'>,
  budget: Budget,
): readonly Group[] {
  const wanted = groups.filter(
    ({ channel }) =>
      (classes.length === history_classes.length || classes.includes(classOf(channel))) &&
      (isWanted?.(channel) ?? true),
  );
  for (const { seqs } of wanted) budget.messages_left -= seqs.length;
  return wanted;
}

async function messagesIn(
  groups: readonly Group[],
  stretch: Stretch,
  budget: Budget,
): Promise<readonly HistoryMessage[]> {
  const { from_ms, to_ms, order, after } = stretch;
  const messages = await messagesOfGroups(wantedIn(groups, stretch, budget));
  return messages.filter(
    (message) =>
      message.time_ms >= from_ms && message.time_ms < to_ms && (!after || isAfter(message, after, order)),
  );
}
