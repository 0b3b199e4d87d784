/** Figures of numbers over time: mean, least, greatest and last value of each bucket. */
import type { Json } from '../../contract/json.ts';

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
