/** Names the city at a position, offline, from the packed index of GeoNames places. */
import { readFileSync } from 'node:fs';
import { InvariantBroken } from '../../platform/errors.ts';
import { bands, cities_file, coordinate_scale, influence_scale, magic } from './cities-format.ts';
import { distance_m, type Point } from '../../toolkit/device/distance.ts';

/** Farther than this from every place there is no city: open sea, desert, ice. */
export const reach_km = 100;
const km_per_degree = 111.1;

interface Index {
  readonly starts: Uint32Array;
  readonly lats: Int32Array;
  readonly lons: Int32Array;
  readonly offsets: Uint32Array;
  readonly influences: Uint8Array;
  readonly names: Buffer;
}

/** Names the city at a position, or null. Reads the index each time: a kit seldom moves to another place, and 1 MB would stay. */
export function cityAt(at: Point): string | null {
  return findCity(openIndex(readFileSync(cities_file)), at);
}

/** Reads the tables where they stand; throws `InvariantBroken` when the bytes are not such an index. */
export function openIndex(bytes: Buffer): Index {
  // A small file is read into a shared pool, where it may start at any byte; typed arrays need one of four.
  const { buffer, byteOffset } =
    bytes.byteOffset % 4 === 0 ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  if (bytes.length < 8 || bytes.readUInt32LE(0) !== magic) throw new InvariantBroken('cities.bin is damaged');
  const count = bytes.readUInt32LE(4);
  let at = byteOffset + 8;
  const take = (length: number): number => {
    const start = at;
    at += length;
    if (at > byteOffset + bytes.length) throw new InvariantBroken('cities.bin is cut off');
    return start;
  };
  const starts = new Uint32Array(buffer, take(4 * (bands + 1)), bands + 1);
  const lats = new Int32Array(buffer, take(4 * count), count);
  const lons = new Int32Array(buffer, take(4 * count), count);
  const offsets = new Uint32Array(buffer, take(4 * (count + 1)), count + 1);
  const influences = new Uint8Array(buffer, take(count), count);
  const names = Buffer.from(buffer, at, byteOffset + bytes.length - at);
  return { starts, lats, lons, offsets, influences, names };
}

/** The place whose distance less its influence is least, within `reach_km`; null where there is none. */
export function findCity(index: Index, { latitude, longitude }: Point): string | null {
  const at = { latitude, longitude: wrapped(longitude) };
  const reach_degrees = reach_km / km_per_degree;
  const first = Math.max(0, Math.floor(latitude - reach_degrees + 90));
  const last = Math.min(bands - 1, Math.floor(latitude + reach_degrees + 90));
  const widest = Math.cos((Math.min(90, Math.abs(latitude) + reach_degrees) * Math.PI) / 180);
  const span = Math.min(180, reach_degrees / Math.max(widest, 1e-6));
  let best = { score_km: Number.POSITIVE_INFINITY, place: -1 };
  for (let band = first; band <= last; band += 1) {
    // Beyond the date line the same window stands a turn further.
    for (const turn of [-360, 0, 360]) {
      best = bestOf(index, band, [at.longitude + turn - span, at.longitude + turn + span], { at, best });
    }
  }
  if (best.place < 0) return null;
  return index.names.toString('utf8', index.offsets[best.place], index.offsets[best.place + 1]);
}

interface Search {
  readonly at: Point;
  readonly best: { readonly score_km: number; readonly place: number };
}

function bestOf(index: Index, band: number, [west, east]: readonly [number, number], { at, best }: Search) {
  const end = index.starts[band + 1] ?? 0;
  let found = best;
  for (let place = firstFrom(index, band, west * coordinate_scale); place < end; place += 1) {
    const longitude = (index.lons[place] ?? 0) / coordinate_scale;
    if (longitude > east) break;
    const latitude = (index.lats[place] ?? 0) / coordinate_scale;
    const away_km = distance_m(at, { latitude, longitude }) / 1_000;
    const score_km = away_km - (index.influences[place] ?? 0) / influence_scale;
    if (away_km <= reach_km && score_km < found.score_km) found = { score_km, place };
  }
  return found;
}

/** First place of the band that is not west of this longitude. */
function firstFrom({ starts, lons }: Index, band: number, west: number): number {
  let low = starts[band] ?? 0;
  let high = starts[band + 1] ?? 0;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lons[middle] ?? 0) < west) low = middle + 1;
    else high = middle;
  }
  return low;
}

function wrapped(longitude: number): number {
  return ((((longitude + 180) % 360) + 360) % 360) - 180;
}
