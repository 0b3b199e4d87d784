/** Numbers of feeds over time, in buckets: from the figures of days where they suit, else from the messages. */
import { addFigures, addValue, type Buckets, fieldPath, type Figures, numberAt } from '../figures.ts';
import type { HistoryStore } from '../history-store.ts';
import { classOf, dayOf, identityOf } from '../message.ts';
import { type Budget, isSpent, landedGroups, segmentGroups } from './reader.ts';
import { hasFigures, openFigures, rollup_bucket_ms } from '../figures.ts';
import type { Group } from '../segment.ts';
import type { Zone } from './zone.ts';
import { day_ms } from '../../../platform/time.ts';

export interface SeriesQuery {
  readonly kit_id: string;
  /** `feed/{asset_id}/{feed}`, or `telemetry` of the kit itself. */
  readonly channel: string;
  /** Path of the number in the data: `lat`, `wans.starlink0.latency_ms`. */
  readonly field: string;
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  readonly bucket_ms: number;
  /** Left out: UTC. */
  readonly zone?: Zone | undefined;
}

export interface Series {
  /** `figures`: at least in part from the figures of days. */
  readonly source: 'messages' | 'figures';
  /** By the start of the bucket; a bucket without a value is absent. */
  readonly buckets: readonly (readonly [start_ms: number, Figures])[];
}

/** From `from_ms` on, `to_ms` not included. */
interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
}

/** Reads one series; undefined when the budget was spent before its end. */
export async function readSeries(
  store: HistoryStore,
  query: SeriesQuery,
  budget: Budget,
): Promise<Series | undefined> {
  const { kit_id, channel, from_ms, to_ms, bucket_ms, zone } = query;
  const startOf = (time_ms: number): number =>
    zone ? zone.startOf(time_ms, bucket_ms) : Math.floor(time_ms / bucket_ms) * bucket_ms;
  const buckets: Buckets = new Map();
  const adding = { buckets, path: fieldPath(query.field), startOf, landed: new Set<string>() };
  const isWanted = (each: string): boolean => each === channel;
  const stretchOf = (span: Span) =>
    ({ kit_id, classes: [classOf(channel)], ...span, order: 'asc', isWanted }) as const;
  for await (const group of landedGroups(store, stretchOf({ from_ms, to_ms }), budget)) {
    addGroup(adding, group, { from_ms, to_ms });
    for (const seq of group.seqs) adding.landed.add(identityOf({ ...group, seq }));
  }
  const covered = await addDays(store, query, { buckets, startOf });
  for (const gap of gapsOf({ from_ms, to_ms }, covered)) {
    for await (const group of segmentGroups(store, stretchOf(gap), budget))
      addGroup(adding, group, gap, adding.landed);
    if (isSpent(budget)) return undefined;
  }
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  return { source: covered.length > 0 ? 'figures' : 'messages', buckets: sorted };
}

/** Adds the figures of whole ten minutes, and returns the spans that they cover, in order. */
async function addDays(
  store: HistoryStore,
  query: SeriesQuery,
  { buckets, startOf }: Pick<Adding, 'buckets' | 'startOf'>,
): Promise<readonly Span[]> {
  const { kit_id, channel, field, from_ms, to_ms, bucket_ms, zone } = query;
  // Of a zone whose hours begin within ten minutes of UTC, such as Asia/Kathmandu, figures belong to two buckets.
  const offset_ms = zone?.offsetAt(from_ms) ?? 0;
  if (!hasFigures(channel) || bucket_ms % rollup_bucket_ms > 0 || offset_ms % rollup_bucket_ms !== 0)
    return [];
  const days = await store.historyDays({
    kit_id,
    channel,
    from_day: dayOf(from_ms),
    to_day: dayOf(to_ms - 1),
  });
  const covered: Span[] = [];
  for (const { day, to_ms: until_ms, body } of days) {
    const lo_ms = Math.max(day * day_ms, Math.ceil(from_ms / rollup_bucket_ms) * rollup_bucket_ms);
    const hi_ms = Math.floor(Math.min(until_ms, to_ms) / rollup_bucket_ms) * rollup_bucket_ms;
    if (hi_ms <= lo_ms) continue;
    covered.push({ from_ms: lo_ms, to_ms: hi_ms });
    for (const [start_ms, figures] of openFigures(body, field)) {
      if (start_ms >= lo_ms && start_ms < hi_ms) addFigures(buckets, startOf(start_ms), figures);
    }
  }
  return covered;
}

/** What is left of the span without the covered ones. */
function gapsOf({ from_ms, to_ms }: Span, covered: readonly Span[]): readonly Span[] {
  const gaps: Span[] = [];
  let at_ms = from_ms;
  for (const span of covered) {
    if (span.from_ms > at_ms) gaps.push({ from_ms: at_ms, to_ms: span.from_ms });
    at_ms = span.to_ms;
  }
  return at_ms < to_ms ? [...gaps, { from_ms: at_ms, to_ms }] : gaps;
}

interface Adding {
  readonly buckets: Buckets;
  readonly path: readonly string[];
  /** The start of the bucket of a time. */
  readonly startOf: (time_ms: number) => number;
}

/** Adds the messages of the group in the span, without messages that were added before. */
function addGroup(
  { buckets, path: [key = '', ...path], startOf }: Adding,
  group: Group,
  span: Span,
  added?: ReadonlySet<string>,
): void {
  const values = group.unsynced ? undefined : group.valuesOf(key);
  if (!values) return;
  const { channel, epoch, seqs, times_ms } = group;
  seqs.forEach((seq, index) => {
    const time_ms = times_ms[index] ?? 0;
    if (time_ms < span.from_ms || time_ms >= span.to_ms) return;
    if (added && added.size > 0 && added.has(identityOf({ channel, epoch, seq }))) return;
    const number = numberAt(values[index], path);
    if (number !== undefined) addValue(buckets, startOf(time_ms), number, time_ms);
  });
}
