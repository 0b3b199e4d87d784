/** Questions about the history of a kit. The caller has checked that the client may ask them. */
import { json, type Json, type JsonObject, jsonObject } from '../../../contract/json.ts';
import { channels } from '../../../contract/topics.ts';
import type { InTurn } from '../../../platform/semaphore.ts';
import {
  type CompletenessResource,
  type ErasureList,
  erasureResource,
  type EventPage,
  type HistoryEvent,
  type HistoryPage,
  type SeriesEntry,
  type SeriesList,
} from '../../api/history-resources.ts';
import { assetEventOf } from '../../alarms/conditions.ts';
import type { AlarmSeverity } from '../../severity.ts';
import { RequestProblem } from '../../api/problem.ts';
import { assetOf, isErased, observedMs } from '../erasure.ts';
import type { HistoryStore } from '../history-store.ts';
import { holes_max } from '../holes.ts';
import { byArrival, feedOf, history_classes, type HistoryClass, type HistoryMessage } from '../message.ts';
import { type ArrivalPage, type ArrivalQuery, isBehind, placeBehind, readArrivals } from './arrivals.ts';
import { cursorAfter, type Place, readCursor } from './cursor.ts';
import {
  compareText,
  fitting,
  FleetEvents,
  type FleetMessage,
  type Order,
  type Page,
  type PageQuery,
  placeIn,
  readPage,
} from './page.ts';
import { type Budget, newBudget, newPause } from './reader.ts';
import { readSeries, type Series } from './series.ts';
import { readTrack, type Track, type TrackQuery } from './track.ts';
import type { Zone } from './zone.ts';
import { texts } from '../../texts.ts';
import type { CloudAck } from '../../../contract/tasks.ts';
import type { Change, Erasure, ErasureQuery } from '../../stored/stored.ts';

const id_bytes = 16;
const place_bytes = id_bytes + 6;

/**
 * Events of several kits in the order of arrival. The order of two kits is not that of their commits, so a cursor has the place of each:
 * of one whose commit was slow, nothing is skipped.
 */
class FleetArrivals {
  readonly #limit: number;
  readonly #places: Map<string, Place>;
  #kept: readonly FleetMessage[] = [];
  readonly #ends = new Map<string, Place>();
  #more = false;

  constructor(places: ReadonlyMap<string, Place>, limit: number) {
    this.#places = new Map(places);
    this.#limit = limit;
  }

  get events(): readonly FleetMessage[] {
    return this.#kept;
  }

  get more(): boolean {
    return this.#more;
  }

  after(kit_id: string): Place | undefined {
    return this.#places.get(kit_id);
  }

  add(kit_id: string, { messages, end, more }: ArrivalPage): void {
    this.#ends.set(kit_id, end);
    const all = [...this.#kept, ...messages.map((message) => ({ kit_id, message }))].sort(compare);
    this.#kept = fitting(all, this.#limit);
    const excess = all.slice(this.#kept.length);
    // Of a kit that gives way, what is left is behind the last message that stays.
    for (const { kit_id: id } of excess) this.#ends.delete(id);
    this.#more ||= more || excess.length > 0;
  }

  /** The place of each kit behind what is given. */
  get places(): ReadonlyMap<string, Place> {
    const last = new Map(this.#kept.map(({ kit_id, message }) => [kit_id, message as Place]));
    return new Map([...this.#places, ...last, ...this.#ends]);
  }
}

function compare(a: FleetMessage, b: FleetMessage): number {
  const difference = (a.message.arrived_ms ?? 0) - (b.message.arrived_ms ?? 0);
  return difference || compareText(a.kit_id, b.kit_id) || byArrival(a.message, b.message);
}

/** As a cursor: numbers for places between commits, and a cursor of its own for each within one. */
function fleetCursorAfter(question: unknown, places: ReadonlyMap<string, Place>): string {
  const between = [...places].filter(([, place]) => isBehind(place));
  const within = [...places].filter(([, place]) => !isBehind(place));
  const bytes = Buffer.alloc(between.length * place_bytes);
  for (const [index, [kit_id, { arrived_ms = 0 }]] of between.entries()) {
    bytes.write(kit_id.replaceAll('-', ''), index * place_bytes, 'hex');
    bytes.writeUIntBE(arrived_ms, index * place_bytes + id_bytes, place_bytes - id_bytes);
  }
  const start = cursorAfter(question, placeBehind(0));
  const others = within.map(([kit_id, place]) => cursorAfter(question, { ...place, kit_id }));
  return [start, bytes.toString('base64url'), ...others].join('.');
}

/** Throws `bad-request` when it is no such cursor, or one of another question. */
function readFleetCursor(question: unknown, cursor: string): ReadonlyMap<string, Place> {
  const [start = '', between = '', ...within] = cursor.split('.');
  readCursor(question, start);
  const bytes = Buffer.from(between, 'base64url');
  if (bytes.length % place_bytes !== 0) throw new RequestProblem('bad-request', texts.foreign_cursor);
  const places = new Map<string, Place>();
  for (let at = 0; at < bytes.length; at += place_bytes) {
    const hex = bytes.toString('hex', at, at + id_bytes);
    const kit_id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, '$1-$2-$3-$4-$5');
    places.set(kit_id, placeBehind(bytes.readUIntBE(at + id_bytes, place_bytes - id_bytes)));
  }
  for (const each of within) {
    const { kit_id = '', ...place } = readCursor(question, each);
    places.set(kit_id, place);
  }
  return places;
}

export interface Span {
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  /** The bounds that the client gave; omitted ones move with the time. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

interface Paged extends Span {
  readonly order: Order;
  readonly arrived_from?: number | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface MessageFilter extends Paged {
  readonly asset_id?: string | undefined;
  readonly class?: HistoryClass | undefined;
  readonly feed?: string | undefined;
}

export interface EventFilter extends Paged {
  readonly types?: readonly string[] | undefined;
  readonly assets?: readonly string[] | undefined;
  readonly severities?: readonly AlarmSeverity[] | undefined;
}

export interface SeriesFilter extends Span {
  readonly select: readonly string[];
  readonly bucket_ms: number;
  readonly zone?: Zone | undefined;
}

interface AnsweringStore extends HistoryStore {
  readonly acks: (kit_id: string) => Promise<readonly CloudAck[]>;
}

export class HistoryOperations {
  readonly #store: AnsweringStore;

  constructor(store: AnsweringStore) {
    this.#store = store;
  }

  async messages(kit_id: string, filter: MessageFilter): Promise<HistoryPage> {
    const { messages, next, more } = await this.page(kit_id, filter);
    const pause = newPause();
    const resources: HistoryPage['messages'] = [];
    for (const message of messages) {
      await pause();
      resources.push({ ...messageResource(message), ...(more !== undefined && arrivalOf(message)) });
    }
    return { messages: resources, next, more };
  }

  async page(kit_id: string, filter: MessageFilter, budget: Budget = newBudget()): Promise<Page> {
    const { asset_id, class: only, feed, from, to, ...paged } = filter;
    const query: PageQuery = {
      ...paged,
      kit_id,
      classes: only ? [only] : history_classes,
      filter: { asset_id, feed, from, to },
      isWanted: (channel) => feed === undefined || feedOf(channel)?.feed === feed,
      isMatch: (message) => asset_id === undefined || assetOf(message) === asset_id,
    };
    return readPage(this.#store, query, budget);
  }

  /** Those of the messages of a kit that were not erased since they were read. */
  async kept(kit_id: string, messages: readonly HistoryMessage[]): Promise<readonly HistoryMessage[]> {
    const erased = await this.#store.historyErased(kit_id);
    const now_ms = Date.now();
    return messages.filter((message) => !isErased(erased, message, observedMs(message, now_ms)));
  }

  async events(kit_id: string, filter: EventFilter): Promise<EventPage> {
    const { messages, next, more } = await readPage(this.#store, eventQuery(kit_id, filter), newBudget());
    return {
      events: messages.map((message) => eventResource(kit_id, message, more !== undefined)),
      next,
      more,
    };
  }

  /** Events of several kits, each read in turn. */
  async fleetEvents(
    kit_ids: readonly string[],
    { cursor, ...filter }: EventFilter & { readonly kits?: readonly string[] | undefined },
    inTurn: InTurn,
  ): Promise<EventPage> {
    const { kits, types, assets, severities, order } = filter;
    const question = ['fleet', kits, types, assets, severities, order, filter.from, filter.to];
    if (order === 'arrival') return this.#fleetArrivals(kit_ids, { ...filter, cursor }, { question, inTurn });
    const place = cursor === undefined ? undefined : readCursor(question, cursor);
    const fleet = new FleetEvents({ ...filter, order });
    for (const kit_id of kit_ids) {
      const after = place && placeIn(kit_id, place, order);
      const query = eventQuery(kit_id, { ...filter, order }, after);
      const page = await inTurn(async () => readPage(this.#store, query, newBudget()));
      if (!fleet.add(kit_id, page)) throw tooMuch(texts.shorter_time);
    }
    const { events, next } = fleet;
    return {
      events: events.map(({ kit_id, message }) => eventResource(kit_id, message)),
      next: next ? cursorAfter(question, next) : null,
    };
  }

  async #fleetArrivals(
    kit_ids: readonly string[],
    filter: EventFilter,
    { question, inTurn }: { readonly question: unknown; readonly inTurn: InTurn },
  ): Promise<EventPage> {
    const { cursor, ...rest } = filter;
    const places = cursor === undefined ? new Map<string, Place>() : readFleetCursor(question, cursor);
    const fleet = new FleetArrivals(places, filter.limit);
    for (const kit_id of kit_ids) {
      const query = eventQuery(kit_id, rest, fleet.after(kit_id));
      fleet.add(kit_id, await inTurn(async () => readArrivals(this.#store, query, newBudget())));
    }
    return {
      events: fleet.events.map(({ kit_id, message }) => eventResource(kit_id, message, true)),
      next: fleetCursorAfter(question, fleet.places),
      more: fleet.more,
    };
  }

  async series(
    kit_id: string,
    { select, from_ms, to_ms, bucket_ms, zone }: SeriesFilter,
  ): Promise<SeriesList> {
    const budget = newBudget();
    const series: SeriesEntry[] = [];
    for (const each of select) {
      const read = await readSeries(
        this.#store,
        { kit_id, ...selected(each), from_ms, to_ms, bucket_ms, zone },
        budget,
      );
      if (!read) throw tooMuch(texts.shorter_or_tens);
      series.push(seriesResource(each, read));
    }
    return { from: iso(from_ms), to: iso(to_ms), bucket_ms, series };
  }

  async track(query: TrackQuery): Promise<Track> {
    const read = await readTrack(this.#store, query, newBudget());
    if (!read) throw tooMuch(texts.shorter_time);
    return read;
  }

  async completeness(kit_id: string): Promise<CompletenessResource> {
    const since_ms = await this.#store.historySince(kit_id);
    const oldest = await this.#store.historyOldest(kit_id);
    const { epochs, hasMoreDrops } = await readCompleteness(this.#store, kit_id);
    const timeOf = (ms: number | undefined): string | null => (ms === undefined ? null : iso(ms));
    return {
      since: timeOf(since_ms),
      oldest: {
        event: timeOf(oldest.event),
        position: timeOf(oldest.position),
        feed: timeOf(oldest.feed),
        kit: timeOf(oldest.kit),
      },
      more_dropped: hasMoreDrops,
      epochs,
    };
  }

  async erase(erasure: Erasure, now_ms: number): Promise<readonly Change[]> {
    return this.#store.eraseHistory(erasure, now_ms);
  }

  async erasures({ kit_id, after, limit }: ErasureQuery): Promise<ErasureList> {
    const found = await this.#store.historyErasures({ kit_id, after, limit: limit + 1 });
    const listed = found.slice(0, limit);
    return {
      erasures: listed.map(erasureResource),
      // The kit stands before all ids.
      next: found.length > limit ? (listed.at(-1)?.asset_id ?? '0') : null,
    };
  }

  /** Throws `not-found` where an answer without anything would be about an asset that the kit never had. */
  async demandKnown(kit_id: string, asset_id: string): Promise<void> {
    if (!(await this.#store.historyKnows(kit_id, asset_id)))
      throw new RequestProblem('not-found', texts.no_asset(asset_id));
  }

  /** The same for a series without a value. */
  async demandSelected(kit_id: string, select: string): Promise<void> {
    const { channel } = selected(select);
    const asset_id = feedOf(channel)?.asset_id;
    if (asset_id !== undefined) await this.demandKnown(kit_id, asset_id);
  }

  /** The same before an erasure: of an asset that was removed, only messages may be left. */
  async demandErasable(kit_id: string, asset_id: string): Promise<void> {
    const always = { from_ms: 0, to_ms: Number.MAX_SAFE_INTEGER, order: 'desc', limit: 1 } as const;
    const { messages, next } = await this.page(kit_id, { asset_id, ...always });
    if (messages.length === 0 && next === null) await this.demandKnown(kit_id, asset_id);
  }
}

function eventQuery(
  kit_id: string,
  filter: EventFilter,
  after?: Place,
): PageQuery & Pick<ArrivalQuery, 'isMatch'> {
  const { types, assets, severities, from, to, ...paged } = filter;
  return {
    ...paged,
    kit_id,
    classes: ['event'],
    after,
    filter: { types, assets, severities, from, to },
    // A status is repeated, and no change: what changes is an event of its own.
    isWanted: (channel) =>
      typeOf(channel) !== 'status' && (types === undefined || types.includes(typeOf(channel))),
    isMatch: (message) =>
      (assets === undefined || assets.includes(assetOf(message) ?? '')) &&
      (severities === undefined || isOfSeverity(message, severities)),
  };
}

/** What is no event of an asset has no severity. */
function isOfSeverity({ channel, data }: HistoryMessage, severities: readonly AlarmSeverity[]): boolean {
  const feed = feedOf(channel)?.feed;
  const severity = feed === undefined ? undefined : assetEventOf(feed, jsonOf(data))?.severity;
  return severity !== undefined && severities.includes(severity);
}

function tooMuch(remedy: string): RequestProblem {
  return new RequestProblem('too-large', texts.reads_too_much(remedy));
}

/** Throws `bad-request`. */
function selected(select: string): { readonly channel: string; readonly field: string } {
  const [, where = '', rest = ''] = /^([^:]+):(.+)$/u.exec(select) ?? [];
  if (where === 'kit') return { channel: channels.telemetry, field: rest };
  const dot = rest.indexOf('.');
  if (where === '' || dot < 1) {
    throw new RequestProblem(
      'bad-request',
      `"${select}" selects nothing; write {asset_id}:{feed}.{field}, or kit:{field}`,
    );
  }
  return { channel: channels.feed(where, rest.slice(0, dot)), field: rest.slice(dot + 1) };
}

function seriesResource(select: string, { source, buckets }: Series): SeriesEntry {
  return {
    select,
    source,
    t: buckets.map(([start_ms]) => iso(start_ms)),
    n: buckets.map(([, { n }]) => n),
    mean: buckets.map(([, { sum, n }]) => sum / n),
    min: buckets.map(([, { min }]) => min),
    max: buckets.map(([, { max }]) => max),
    last: buckets.map(([, { last }]) => last),
  };
}

export function messageResource(message: HistoryMessage): HistoryPage['messages'][number] {
  const { time_ms, unsynced, channel, epoch, seq, data } = message;
  return {
    time: iso(time_ms),
    ...(unsynced && { time_quality: 'unsynced' as const }),
    channel,
    ...feedOf(channel),
    epoch,
    seq,
    data: jsonOf(data),
  };
}

/** Name of the event feed, or the kind of the channel. */
function typeOf(channel: string): string {
  return feedOf(channel)?.feed ?? channel.split('/')[0] ?? channel;
}

/** Shown in the order of arrival. */
function arrivalOf({ arrived_ms = 0 }: HistoryMessage): { readonly arrived_at: string } {
  return { arrived_at: iso(arrived_ms) };
}

function eventResource(kit_id: string, message: HistoryMessage, isByArrival = false): HistoryEvent {
  const asset_id = assetOf(message);
  return {
    time: iso(message.time_ms),
    ...(isByArrival && arrivalOf(message)),
    kit_id,
    type: typeOf(message.channel),
    ...(asset_id !== undefined && { asset_id }),
    data: objectOf(message.data),
  };
}

function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}

function jsonOf(text: string): Json {
  return json.parse(JSON.parse(text));
}

/** Empty when it is no object. */
function objectOf(text: string): JsonObject {
  return jsonObject.catch({}).parse(JSON.parse(text));
}

/** Missing stretches of one epoch that are named. */
const stretches_max = 1_000;

type Epochs = CompletenessResource['epochs'];

/** What is missing of a kit's messages, and why. Newest epoch first. Numbers below the first received one are not counted: an older service may have them. */
export async function readCompleteness(
  store: AnsweringStore,
  kit_id: string,
): Promise<{ readonly epochs: Epochs; readonly hasMoreDrops: boolean }> {
  const reported = await store.historyHoles(kit_id);
  const holes = Map.groupBy(reported.slice(0, holes_max), ({ epoch }) => epoch);
  const epochs = (await store.acks(kit_id)).map(({ epoch, ranges }) => {
    const dropped = holes.get(epoch) ?? [];
    const missing = ranges.slice(1).map(([first], index) => {
      const [lo, hi] = [(ranges[index]?.[1] ?? first) + 1, first - 1];
      // Reports whose numbers overlap; none: it is not explained yet.
      const reasons = dropped.filter((hole) => hole.lo <= hi && hole.hi >= lo).map(({ reason }) => reason);
      return { lo, hi, messages: hi - lo + 1, reasons: [...new Set(reasons)] };
    });
    return {
      epoch,
      received: ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0),
      missing: missing.slice(0, stretches_max),
      more: Math.max(0, missing.length - stretches_max),
      dropped: dropped.map(({ lo, hi, lane, reason, messages, reported_ms }) => {
        return { lo, hi, lane, reason, messages, reported_at: iso(reported_ms) };
      }),
    };
  });
  return { epochs, hasMoreDrops: reported.length > holes_max };
}
