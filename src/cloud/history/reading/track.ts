/** The way of an asset: its fixes as lines, a new one after each gap, without points that lie on the way between others. */
import { channels } from '../../../contract/topics.ts';
import { kmlDocument } from '../../api/kml.ts';
import { decimal, escaped } from '../../api/xml.ts';
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
  const [x, y] = [lonTo(from, point.lon) * east_m, (point.lat - from.lat) * degree_m];
  const [dx, dy] = [lonTo(from, to.lon) * east_m, (to.lat - from.lat) * degree_m];
  const square = dx * dx + dy * dy;
  const along = square === 0 ? 0 : Math.min(1, Math.max(0, (x * dx + y * dy) / square));
  return Math.hypot(x - along * dx, y - along * dy);
}

interface Named {
  readonly asset_id: string;
  readonly name: string;
}

/**
 * The lines cut where they cross 180 degrees (RFC 7946, section 3.1.9): readers would draw them around the world. The cut has the latitude,
 * height and time between the two fixes.
 */
function cutLines(lines: Track['lines']): Track['lines'] {
  return lines.flatMap((line) => {
    const parts: TrackPoint[][] = [[]];
    line.forEach((point, index) => {
      const before = line[index - 1];
      if (before && Math.abs(point.lon - before.lon) > 180) {
        const edge = Math.sign(before.lon) * 180;
        const cut = between(before, point, edge);
        // A fix on the line itself belongs to both sides: it is no second point of either, nor a line of its own.
        if (before.lon !== edge) parts.at(-1)?.push(cut);
        else if (parts.at(-1)?.length === 1) parts.pop();
        if (point.lon !== -edge || index < line.length - 1) parts.push([{ ...cut, lon: -edge }]);
        if (point.lon === -edge) return;
      }
      parts.at(-1)?.push(point);
    });
    return parts;
  });
}

function between(a: TrackPoint, b: TrackPoint, lon: number): TrackPoint {
  const way = lonTo(a, b.lon);
  const share = way === 0 ? 0 : (lon - a.lon) / way;
  const at = (from: number, to: number): number => from + share * (to - from);
  const alt_m = a.alt_m === null || b.alt_m === null ? null : at(a.alt_m, b.alt_m);
  return { time_ms: Math.round(at(a.time_ms, b.time_ms)), lat: at(a.lat, b.lat), lon, alt_m };
}

/** Degrees to the east, the short way round. */
function lonTo({ lon }: Pick<TrackPoint, 'lon'>, to: number): number {
  return ((to - lon + 540) % 360) - 180;
}

/**
 * A feature with one line for each stretch without a gap; `times` has the time of each of its points. A lone fix is a line from it to
 * itself: a line has two positions (RFC 7946, section 3.1.4), and readers refuse the whole file for one that has not.
 */
export function trackGeoJson(track: Track, { asset_id, name }: Named) {
  const { fixes } = track;
  const lines = cutLines(track.lines).map((line) => (line.length === 1 ? line.concat(line) : line));
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
  const segments = cutLines(lines).map((line) => `<trkseg>${line.map(gpxPoint).join('')}</trkseg>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="kit-connector" xmlns="http://www.topografix.com/GPX/1/1">
<trk><name>${escaped(name)}</name>${segments.join('\n')}</trk>
</gpx>
`;
}

function gpxPoint({ lat, lon, alt_m, time_ms }: TrackPoint): string {
  const ele = alt_m === null ? '' : `<ele>${decimal(alt_m)}</ele>`;
  return `<trkpt lat="${decimal(lat)}" lon="${decimal(lon)}">${ele}<time>${new Date(time_ms).toISOString()}</time></trkpt>`;
}

/**
 * For Google Earth and GIS: one line for each stretch, with the time that it spans; a point for a lone fix. Lines follow the ground:
 * without `tessellate` they run below the hills between two fixes (CesiumGS/cesium#8760).
 */
export function trackKml({ lines }: Track, { name }: Named): string {
  const marks = cutLines(lines).map((line) => {
    const [begin, end] = [line[0], line.at(-1)].map((point) => new Date(point?.time_ms ?? 0).toISOString());
    const places = line.map((point) => position(point).map(decimal).join(',')).join(' ');
    const shape =
      line.length === 1
        ? `<Point><coordinates>${places}</coordinates></Point>`
        : `<LineString><tessellate>1</tessellate><coordinates>${places}</coordinates></LineString>`;
    return `<Placemark><name>${escaped(name)}</name><TimeSpan><begin>${begin}</begin><end>${end}</end></TimeSpan>
${shape}</Placemark>`;
  });
  return kmlDocument(escaped(name), marks);
}
