/** Distances, bearings and the scale of the map. */

import { distanceText } from '../units.ts';

/** Mean radius of the Earth (IUGG), metres. */
const earth_m = 6_371_008.8;
const rad = Math.PI / 180;

export interface Place {
  readonly lat: number;
  readonly lon: number;
}

/** Metres east and north of `center`. */
export function project(center: Place, place: Place): readonly [east_m: number, north_m: number] {
  const dLon = (((place.lon - center.lon + 540) % 360) - 180) * rad;
  const lat0 = center.lat * rad;
  const lat = place.lat * rad;
  const cosC = Math.sin(lat0) * Math.sin(lat) + Math.cos(lat0) * Math.cos(lat) * Math.cos(dLon);
  const east = Math.cos(lat) * Math.sin(dLon);
  const north = Math.cos(lat0) * Math.sin(lat) - Math.sin(lat0) * Math.cos(lat) * Math.cos(dLon);
  const sinC = Math.hypot(east, north);
  // At the centre itself the angle and its sine are both nought, and their quotient is one.
  const stretch = sinC === 0 ? 1 : Math.atan2(sinC, cosC) / sinC;
  return [earth_m * stretch * east, earth_m * stretch * north];
}

/** Formats distance and bearing as for radio voice, such as "320 m 045°". */
export function bearingText(from: Place, to: Place): string {
  const { distance_m, bearing } = bearingOf(from, to);
  if (distance_m < 1) return distanceText(distance_m);
  return `${distanceText(distance_m)} ${String(Math.round(bearing) % 360).padStart(3, '0')}°`;
}

/** @returns bearing in degrees clockwise from north */
export function bearingOf(from: Place, to: Place): { readonly distance_m: number; readonly bearing: number } {
  const [east, north] = project(from, to);
  return { distance_m: Math.hypot(east, north), bearing: (Math.atan2(east, north) / rad + 360) % 360 };
}

/** The largest of 1, 2, 5, 10, 20, ... that is not above `m`. */
export function roundDown(m: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(m, 1e-3)));
  return power * ([5, 2, 1].find((step) => step * power <= m) ?? 1);
}

/** Decimal degrees with the hemisphere, about 0.1 m apart. */
export function placeText({ lat, lon }: Place): string {
  return `${lat.toFixed(6)}, ${lon.toFixed(6)}`;
}
