/** The way of an asset: its fixes as lines, a new one after each gap, without points that lie on the way between others. */
import { channels } from '../../../contract/topics.ts';
import type { HistoryStore } from '../history-store.ts';
import { type Budget, isSpent, landedGroups, segmentGroups } from './reader.ts';
import type { Group } from '../segment.ts';

export interface TrackPoint {
  readonly time_ms: number;
  readonly lat: number;
  readonly lon: number;
  readonly alt_m: number | null;
}

export interface TrackQuery {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly from_ms: number;
  /** Not included. */
  readonly to_ms: number;
  /** A longer pause between two fixes ends a line. */
  readonly gap_ms: number;
  /** Points nearer than this to the line between others are left out; 0: none is. */
  readonly tolerance_m: number;
}

export interface Track {
  readonly lines: readonly (readonly TrackPoint[])[];
  /** Fixes before points were left out. */
  readonly fixes: number;
}

/** Metres of a degree of latitude. */
const degree_m = 111_195;

/** Reads the track; undefined when the budget was spent before its end. */
export async function readTrack(
  store: HistoryStore,
  query: TrackQuery,
  budget: Budget,
): Promise<Track | undefined> {
  const { kit_id, asset_id, from_ms, to_ms, gap_ms, tolerance_m } = query;
  const channel = channels.feed(asset_id, 'gps');
  const isWanted = (each: string): boolean => each === channel;
  const stretch = { kit_id, classes: ['position'], from_ms, to_ms, order: 'asc', isWanted } as const;
  // By epoch and number, so that a fix counts once.
  const byEpoch = new Map<number, Map<number, TrackPoint>>();
  const add = (group: Group): void => {
    const bySeq = byEpoch.get(group.epoch) ?? new Map<number, TrackPoint>();
    byEpoch.set(group.epoch, bySeq);
    for (const [seq, point] of pointsOf(group)) {
      if (point.time_ms >= from_ms && point.time_ms < to_ms) bySeq.set(seq, point);
    }
  };
  for await (const group of landedGroups(store, stretch, budget)) add(group);
  for await (const group of segmentGroups(store, stretch, budget)) add(group);
  if (isSpent(budget)) return undefined;
  const points = byEpoch
    .values()
    .flatMap((bySeq) => bySeq.values())
    .toArray()
    .sort((a, b) => a.time_ms - b.time_ms);
  const lines = linesOf(points, gap_ms).map((line) =>
    tolerance_m > 0 ? simplified(line, tolerance_m) : line,
  );
  return { lines, fixes: points.length };
}

function pointsOf(group: Group): (readonly [seq: number, TrackPoint])[] {
  if (group.unsynced) return [];
  const [lats, lons, alts] = ['lat', 'lon', 'alt_m'].map((key) => group.valuesOf(key));
  return group.seqs.flatMap((seq, index) => {
    const [lat, lon, alt_m] = [lats?.[index], lons?.[index], alts?.[index]];
    if (typeof lat !== 'number' || typeof lon !== 'number') return [];
    const point = {
      time_ms: group.times_ms[index] ?? 0,
      lat,
      lon,
      alt_m: typeof alt_m === 'number' ? alt_m : null,
    };
    return [[seq, point] as const];
  });
}

function linesOf(points: readonly TrackPoint[], gap_ms: number): TrackPoint[][] {
  const lines: TrackPoint[][] = [];
  let before_ms = -Infinity;
  for (const point of points) {
    if (point.time_ms - before_ms > gap_ms) lines.push([]);
    lines.at(-1)?.push(point);
    before_ms = point.time_ms;
  }
  return lines;
}

/** The algorithm of Ramer, Douglas and Peucker, on a plane around the first point of each part, without recursion. */
function simplified(line: readonly TrackPoint[], tolerance_m: number): TrackPoint[] {
  const kept = new Set([0, line.length - 1]);
  const parts: [number, number][] = [[0, line.length - 1]];
  for (let part = parts.pop(); part; part = parts.pop()) {
    const [first, last] = part;
    let farthest = first;
    let farthest_m = tolerance_m;
    for (let index = first + 1; index < last; index += 1) {
      const away_m = distance_m(line[index], line[first], line[last]);
      if (away_m > farthest_m) [farthest, farthest_m] = [index, away_m];
    }
    if (farthest === first) continue;
    kept.add(farthest);
    parts.push([first, farthest], [farthest, last]);
  }
  return line.filter((_, index) => kept.has(index));
}

/** From a point to the line between two others, on the ground. */
function distance_m(
  point: TrackPoint | undefined,
  from: TrackPoint | undefined,
  to: TrackPoint | undefined,
): number {
  if (!point || !from || !to) return 0;
  const east_m = degree_m * Math.cos((from.lat * Math.PI) / 180);
  const [x, y] = [(point.lon - from.lon) * east_m, (point.lat - from.lat) * degree_m];
  const [dx, dy] = [(to.lon - from.lon) * east_m, (to.lat - from.lat) * degree_m];
  const square = dx * dx + dy * dy;
  const along = square === 0 ? 0 : Math.min(1, Math.max(0, (x * dx + y * dy) / square));
  return Math.hypot(x - along * dx, y - along * dy);
}

interface Named {
  readonly asset_id: string;
  readonly name: string;
}

/** A feature with one line for each stretch without a gap; `times` has the time of each of its points. */
export function trackGeoJson({ lines, fixes }: Track, { asset_id, name }: Named) {
  return {
    type: 'Feature' as const,
    properties: {
      asset_id,
      name,
      fixes,
      times: lines.map((line) => line.map(({ time_ms }) => new Date(time_ms).toISOString())),
    },
    geometry: { type: 'MultiLineString' as const, coordinates: lines.map((line) => line.map(position)) },
  };
}

function position({ lon, lat, alt_m }: TrackPoint): number[] {
  return alt_m === null ? [lon, lat] : [lon, lat, alt_m];
}

export function trackGpx({ lines }: Track, { name }: Named): string {
  const segments = lines.map((line) => `<trkseg>${line.map(gpxPoint).join('')}</trkseg>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="kit-connector" xmlns="http://www.topografix.com/GPX/1/1">
<trk><name>${escaped(name)}</name>${segments.join('\n')}</trk>
</gpx>
`;
}

function gpxPoint({ lat, lon, alt_m, time_ms }: TrackPoint): string {
  const ele = alt_m === null ? '' : `<ele>${alt_m}</ele>`;
  return `<trkpt lat="${lat}" lon="${lon}">${ele}<time>${new Date(time_ms).toISOString()}</time></trkpt>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A row for each point; `line` counts the stretches without a gap. */
export function trackCsv({ lines }: Track): string {
  const rows = lines.flatMap((line, index) =>
    line.map(({ time_ms, lat, lon, alt_m }) =>
      [new Date(time_ms).toISOString(), lat, lon, alt_m ?? '', index + 1].join(','),
    ),
  );
  return ['time,lat,lon,alt_m,line', ...rows, ''].join('\r\n');
}
