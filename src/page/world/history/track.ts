/** The way of an asset in the time that is shown, and where it was at a moment. */
import { field, listIn } from '../json.ts';
import { spanOf, spanQuery } from './history.ts';
import type { Fix, LiveAsset, View } from '../../types.d.ts';

/** Lines without a gap, oldest first. */
type Track = readonly (readonly Fix[])[];

/** Points that are drawn; of more, every second or third is left out. */
const points_max = 1_500;
const tolerance_m = 3;

const read: WeakMap<object, Track> = new WeakMap();

/** @returns undefined: no history is shown */
export function trackNow(
  { id }: LiveAsset,
  view: View,
): { readonly track: Track; readonly fault: string; readonly isLoading: boolean } | undefined {
  const span = spanOf(view);
  if (span.hours === 0) return undefined;
  const answer = view.history.read(
    view,
    `track ${id} ${span.hours}`,
    `/assets/${id}/track?tolerance_m=${tolerance_m}&${spanQuery(span)}`,
  );
  const { value, fault, isLoading } = answer;
  return { track: trackOf(value), fault, isLoading };
}

/** @param value GeoJSON of the service */
export function trackOf(value: unknown): Track {
  if (typeof value !== 'object' || value === null) return [];
  const known = read.get(value);
  if (known) return known;
  const times = listIn(field(field(value, 'properties'), 'times'));
  const lines = listIn(field(field(value, 'geometry'), 'coordinates')).map((line, i) =>
    listIn(line).flatMap((point, j) => fixIn(listIn(point), listIn(times[i])[j])),
  );
  const every = Math.ceil(lines.reduce((sum, line) => sum + line.length, 0) / points_max);
  const track = lines.map((line) => line.filter((_, i) => i % every === 0 || i === line.length - 1));
  read.set(value, track);
  return track;
}

/** @param point longitude, latitude */
function fixIn([lon, lat]: readonly unknown[], time: unknown): readonly Fix[] {
  const time_ms = Date.parse(String(time));
  return typeof lat === 'number' && typeof lon === 'number' && !Number.isNaN(time_ms)
    ? [{ lat, lon, time_ms }]
    : [];
}

/**
 * Where the asset was: between two fixes of one line on the way from one to the other, else at the last fix before.
 * @returns with the time of the last fix
 */
export function placeAt(track: Track, moment_ms: number): Fix | undefined {
  const line = track.findLast(([first]) => first !== undefined && first.time_ms <= moment_ms);
  const i = line?.findLastIndex(({ time_ms }) => time_ms <= moment_ms) ?? -1;
  const a = line?.[i];
  const b = line?.[i + 1];
  if (!a || !b) return a;
  const share = (moment_ms - a.time_ms) / Math.max(1, b.time_ms - a.time_ms);
  return {
    lat: a.lat + share * (b.lat - a.lat),
    lon: a.lon + share * (b.lon - a.lon),
    time_ms: a.time_ms,
  };
}
