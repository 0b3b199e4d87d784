/** The figures of one day of a channel, for each ten minutes: what charts over weeks are drawn from. */
import { deflateSync, inflateSync } from 'node:zlib';
import { z } from 'zod';
import { addValue, type Buckets, fieldPath, type Figures, numberAt, numberPaths } from './figures.ts';
import { classOf } from './message.ts';
import type { Group } from './segment.ts';

export const rollup_bucket_ms = 600_000;
/** Fields of a channel and channels of a day that have figures; the others are read from the segments. */
const fields_max = 64;
const channels_max = 2_048;

/** By channel, by field. */
export type DayFigures = Map<string, Map<string, Buckets>>;

/** Whether channels of this class have figures. */
export function hasFigures(channel: string): boolean {
  return classOf(channel) !== 'event' && (channel === 'telemetry' || channel.startsWith('feed/'));
}

/** Adds the messages of a group. */
export function addGroup(day: DayFigures, group: Group): void {
  const { channel, seqs, times_ms } = group;
  if (!hasFigures(channel) || (!day.has(channel) && day.size >= channels_max)) return;
  const fields = day.get(channel) ?? new Map<string, Buckets>();
  day.set(channel, fields);
  for (const key of group.keys) {
    const values = group.valuesOf(key) ?? [];
    seqs.forEach((_, index) => {
      const value = values[index];
      const time_ms = times_ms[index] ?? 0;
      const start_ms = time_ms - (time_ms % rollup_bucket_ms);
      // Most values are numbers themselves: nothing has to be searched.
      if (typeof value === 'number') {
        const buckets = bucketsOf(fields, key);
        if (buckets) addValue(buckets, start_ms, value, time_ms);
        return;
      }
      for (const field of numberPaths({ [key]: value })) {
        const buckets = bucketsOf(fields, field);
        const number = numberAt({ [key]: value }, fieldPath(field));
        if (buckets && number !== undefined) addValue(buckets, start_ms, number, time_ms);
      }
    });
  }
}

/** Undefined: the channel has too many fields. */
function bucketsOf(fields: Map<string, Buckets>, field: string): Buckets | undefined {
  const known = fields.get(field);
  if (known || fields.size >= fields_max) return known;
  const buckets = new Map<number, Figures>();
  fields.set(field, buckets);
  return buckets;
}

type StoredFigures = readonly [
  start_ms: number,
  n: number,
  sum: number,
  min: number,
  max: number,
  last: number,
  last_ms: number,
];

/** Nothing is checked: `packFigures` has written it. */
const storedFigures = z.custom<Readonly<Record<string, readonly StoredFigures[]>>>();

export function packFigures(fields: ReadonlyMap<string, Buckets>): Uint8Array {
  const stored = [...fields].map(([field, buckets]) => [
    field,
    [...buckets]
      .sort(([a], [b]) => a - b)
      .map(([start_ms, { n, sum, min, max, last, last_ms }]): StoredFigures => [
        start_ms,
        n,
        sum,
        min,
        max,
        last,
        last_ms,
      ]),
  ]);
  return deflateSync(JSON.stringify(Object.fromEntries(stored)));
}

/** The figures of one field, by the start of their ten minutes. */
export function openFigures(
  body: Uint8Array,
  field: string,
): readonly (readonly [start_ms: number, Figures])[] {
  const stored = storedFigures.parse(JSON.parse(inflateSync(body).toString()));
  return (Object.hasOwn(stored, field) ? (stored[field] ?? []) : []).map(
    ([start_ms, n, sum, min, max, last, last_ms]) => [start_ms, { n, sum, min, max, last, last_ms }] as const,
  );
}
