/** The way of an asset in the time that is shown, and where it was and what it reported at a moment of it. */
import { field, isJsonObject, listIn, textIn } from '../../json.ts';
import { spanOf, spanQuery } from './history.ts';
import type { Fix, LiveAsset, View, FeedMessage } from '../../types.d.ts';

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

/** Kits repeat what does not change every 300 s. */
const repeated_ms = 330_000;

/** `isLoading`: some are not those of the moment yet. */
export interface FeedsThen {
  readonly feeds: Readonly<Record<string, FeedMessage>>;
  readonly isLoading: boolean;
  readonly fault: string;
}

/** The last message of each of these feeds before the moment; undefined while now is shown. */
export function feedsThen({ id }: LiveAsset, names: readonly string[], view: View): FeedsThen | undefined {
  const { moment_ms } = view.choices;
  if (moment_ms === null) return undefined;
  const to_ms = Math.round(moment_ms) + 1;
  const feeds: Record<string, FeedMessage> = {};
  let isLoading = false;
  let fault = '';
  for (const name of names) {
    const path = `/assets/${id}/history?feed=${name}&order=desc&limit=1&from=${to_ms - repeated_ms}&to=${to_ms}`;
    const answer = view.history.read(view, `moment ${id} ${name}`, path);
    fault ||= answer.fault;
    if (!answer.path.endsWith(path)) {
      isLoading = true;
      continue;
    }
    const message = messageIn(listIn(field(answer.value, 'messages'))[0]);
    if (message) feeds[name] = message;
  }
  return { feeds, isLoading: isLoading && fault === '', fault };
}

function messageIn(value: unknown): FeedMessage | undefined {
  const data = field(value, 'data');
  return isJsonObject(data) ? { time: textIn(field(value, 'time')), data } : undefined;
}
