/** Figures of numbers over time: mean, least, greatest and last value of each bucket. Those of whole days are stored. */
import { deflateSync, inflateSync } from 'node:zlib';
import { z } from 'zod';
import type { Json } from '../../contract/json.ts';
import { day_ms, turn } from '../../platform/time.ts';
import { readTombstones } from './erasure.ts';
import { classOf, dayOf } from './message.ts';
import { bodyOf, type Group, openSegment } from './segment.ts';
import { sql, type Database, type SqlValue } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';

/** Numbers of one bucket. */
export interface Figures {
  n: number;
  sum: number;
  min: number;
  max: number;
  last: number;
  last_ms: number;
}

/** By the start of the bucket, milliseconds since 1970. */
export type Buckets = Map<number, Figures>;

export function addValue(buckets: Buckets, start_ms: number, value: number, time_ms: number): void {
  const known = buckets.get(start_ms);
  if (!known) {
    buckets.set(start_ms, { n: 1, sum: value, min: value, max: value, last: value, last_ms: time_ms });
    return;
  }
  known.n += 1;
  known.sum += value;
  if (value < known.min) known.min = value;
  if (value > known.max) known.max = value;
  if (time_ms >= known.last_ms) {
    known.last = value;
    known.last_ms = time_ms;
  }
}

export function addFigures(buckets: Buckets, start_ms: number, figures: Figures): void {
  const known = buckets.get(start_ms);
  if (!known) {
    buckets.set(start_ms, { ...figures });
    return;
  }
  known.n += figures.n;
  known.sum += figures.sum;
  known.min = Math.min(known.min, figures.min);
  known.max = Math.max(known.max, figures.max);
  if (figures.last_ms >= known.last_ms) {
    known.last = figures.last;
    known.last_ms = figures.last_ms;
  }
}

/** A path through objects, and through lists by the `name` of their entries: `wans.starlink0.latency_ms`. */
export type FieldPath = readonly string[];

export function fieldPath(field: string): FieldPath {
  return field.split('.');
}

/** The number at the path, true as 1 and false as 0; undefined: none. */
export function numberAt(value: Json | undefined, path: FieldPath): number | undefined {
  let at: Json | undefined = value;
  for (let next = 0; next < path.length;) {
    const step = childAt(at, path, next);
    if (!step) return undefined;
    at = step.child;
    next += step.keys;
  }
  if (typeof at === 'boolean') return at ? 1 : 0;
  return typeof at === 'number' ? at : undefined;
}

/** Names of entries may hold points, as those of VLANs do (`eth0.100`): such a name takes several keys of the path, and the longest name counts. */
function childAt(
  value: Json | undefined,
  path: FieldPath,
  next: number,
): { readonly child: Json | undefined; readonly keys: number } | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!isList(value)) {
    const key = path[next] ?? '';
    return Object.hasOwn(value, key) ? { child: value[key], keys: 1 } : undefined;
  }
  for (let keys = path.length - next; keys > 0; keys -= 1) {
    const name = path.slice(next, next + keys).join('.');
    const child = value.find((each) => nameOf(each) === name);
    if (child !== undefined) return { child, keys };
  }
  return undefined;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function nameOf(value: Json | undefined): string | undefined {
  if (typeof value !== 'object' || value === null || isList(value)) return undefined;
  const name = value['name'];
  return typeof name === 'string' ? name : undefined;
}

/** Levels of objects and lists in which numbers are looked for. */
const depth_max = 3;

/** The paths of all numbers in a value, as text. */
export function numberPaths(value: Json | undefined, before = '', depth = 0): string[] {
  if (typeof value === 'number' || typeof value === 'boolean') return before === '' ? [] : [before];
  if (typeof value !== 'object' || value === null || depth > depth_max) return [];
  const entries: [string | undefined, Json | undefined][] = isList(value)
    ? value.map((each) => [nameOf(each), each])
    : Object.entries(value);
  return entries.flatMap(([key, each]) =>
    key === undefined ? [] : numberPaths(each, before === '' ? key : `${before}.${key}`, depth + 1),
  );
}

/** The figures of one day of a channel are for each ten minutes: what charts over weeks are drawn from. */
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

/** The day of today is made again after this time at the earliest. */
const today_every_ms = 3 * 3_600_000;
/** Segments of one statement. */
const segments_at_once = 4;

/** Makes the figures of one day from its segments: late messages only mark the day, and it is made again. False: none has to be made now. */
export async function rollUpDay(database: Database, now_ms: number): Promise<boolean> {
  const [changed] = await sql(database)`SELECT kit_id, day, mark FROM history_changed
    WHERE changed = 1 AND (day < ${dayOf(now_ms)} OR rolled_ms <= ${now_ms - today_every_ms})
    ORDER BY rolled_ms, day LIMIT 1`;
  if (!changed) return false;
  const kit_id = String(changed['kit_id']);
  const day = Number(changed['day']);
  const { figures, to_ms } = await figuresOf(database, kit_id, day);
  // A day that is over is covered whole.
  const covered_ms = day < dayOf(now_ms) ? (day + 1) * day_ms : to_ms;
  const rows: Readonly<Record<string, SqlValue>>[] = [];
  for (const [channel, fields] of figures) {
    await turn();
    rows.push({ kit_id, channel, day, to_ms: covered_ms, body: packFigures(fields) });
  }
  await database
    .transaction(async (queries) => {
      // What changed meanwhile stays marked, and the day is made again.
      const [left] = await sql(queries)`UPDATE history_changed SET rolled_ms = ${now_ms}, changed = CASE WHEN
        mark = ${Number(changed['mark'])} THEN 0 ELSE 1 END WHERE kit_id = ${kit_id} AND day = ${day}
        RETURNING changed`;
      // Figures of what was erased meanwhile must not be stored.
      if (Number(left?.['changed']) === 1 && (await readTombstones(queries, kit_id)).size > 0)
        throw new Superseded();
      await queries.all('DELETE FROM history_days WHERE kit_id = ? AND day = ?', kit_id, day);
      await insertRows(queries, 'history_days', rows);
    })
    .catch((error: unknown) => {
      if (!(error instanceof Superseded)) throw error;
    });
  return true;
}

/** The day changed while its figures were made. */
class Superseded extends Error {}

async function figuresOf(database: Database, kit_id: string, day: number) {
  const figures: DayFigures = new Map();
  let to_ms = day * day_ms;
  for (let after = ''; ;) {
    const rows = await sql(database)`SELECT id, hi_ms, body FROM history WHERE kit_id = ${kit_id}
      AND day = ${day} AND misdated = 0 AND class <> 'event' AND id > ${after} ORDER BY id LIMIT ${segments_at_once}`;
    for (const row of rows) {
      to_ms = Math.max(to_ms, Number(row['hi_ms']) + 1);
      for (const group of await openSegment(bodyOf(row))) {
        await turn();
        addGroup(figures, group);
      }
    }
    if (rows.length < segments_at_once) return { figures, to_ms };
    after = String(rows.at(-1)?.['id']);
  }
}
