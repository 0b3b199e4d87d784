/** Where a drone calls home, and the fence around it, as far as its feeds report them. */
import { isRecord, listIn } from './json.js';
import { bearingOf } from './geo.js';
import { fieldOf, numberOf } from './world.js';

/** @import { Place } from './geo.js' */
/** @import { Now } from '../types.d.ts' */

/** @typedef {{ readonly polygon: readonly Place[], readonly radius_m: number | undefined, readonly center: Place | undefined, readonly height_max_m: number | undefined }} Fence */

/**
 * @param {string} asset_id
 * @param {Now} now
 * @returns {Place | undefined}
 */
export function homeOf(asset_id, { world }) {
  const message = world.feeds.get(asset_id)?.['home'];
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  return lat === undefined || lon === undefined ? undefined : { lat, lon };
}

/**
 * The fence as the autopilot reports it: a polygon, a circle, or both. Undefined: not reported.
 * @param {string} asset_id
 * @param {Now} now
 * @returns {Fence | undefined}
 */
export function fenceOf(asset_id, now) {
  const message = now.world.feeds.get(asset_id)?.['fence'];
  if (!message || fieldOf(message, 'enabled') === false) return undefined;
  const points = fieldOf(message, 'polygon') ?? fieldOf(message, 'points');
  const polygon = listIn(points).flatMap(placeIn);
  const radius_m = numberOf(message, 'radius_m');
  if (polygon.length < 3 && radius_m === undefined) return undefined;
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  const center = lat !== undefined && lon !== undefined ? { lat, lon } : homeOf(asset_id, now);
  return { polygon, radius_m, center, height_max_m: numberOf(message, 'alt_max_m') };
}

/**
 * Whether a place lies inside the fence; undefined: the fence is not known.
 * @param {Place} place
 * @param {Fence | undefined} fence
 * @returns {boolean | undefined}
 */
export function isInside(place, fence) {
  if (!fence) return undefined;
  if (fence.polygon.length >= 3 && !isInPolygon(place, fence.polygon)) return false;
  if (fence.radius_m === undefined) return true;
  return fence.center ? bearingOf(fence.center, place).distance_m <= fence.radius_m : undefined;
}

/**
 * Counts the edges that a line to the east crosses.
 * @param {Place} place
 * @param {readonly Place[]} polygon
 */
function isInPolygon({ lat, lon }, polygon) {
  let isIn = false;
  for (const [i, a] of polygon.entries()) {
    const b = polygon[(i + 1) % polygon.length];
    if (b && a.lat > lat !== b.lat > lat && lon < a.lon + ((lat - a.lat) / (b.lat - a.lat)) * (b.lon - a.lon))
      isIn = !isIn;
  }
  return isIn;
}

/**
 * @param {unknown} point `{lat, lon}` or `[lat, lon]`
 * @returns {readonly Place[]}
 */
function placeIn(point) {
  const [lat, lon] = isRecord(point) ? [point['lat'], point['lon']] : listIn(point);
  return typeof lat === 'number' && typeof lon === 'number' ? [{ lat, lon }] : [];
}
