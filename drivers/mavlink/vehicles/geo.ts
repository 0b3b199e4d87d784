/** Distances and areas on the ground, accurate enough for the range of a drone. */
import { distance_m as great_circle_m, type Point } from '../../../src/toolkit/device/distance.ts';

export interface Place {
  /** Degrees, WGS-84. */
  readonly lat: number;
  readonly lon: number;
}

/** Returns the distance along the ground in metres. */
export function distance_m(a: Place, b: Place): number {
  return great_circle_m(pointOf(a), pointOf(b));
}

function pointOf({ lat, lon }: Place): Point {
  return { latitude: lat, longitude: lon };
}

/** Whether the place is inside the polygon, whose sides are straight in latitude and longitude. */
export function isInside({ lat, lon }: Place, polygon: readonly Place[]): boolean {
  let inside = false;
  let from = polygon.at(-1);
  for (const to of polygon) {
    if (from && from.lat > lat !== to.lat > lat) {
      const crossing = from.lon + ((lat - from.lat) / (to.lat - from.lat)) * (to.lon - from.lon);
      if (lon < crossing) inside = !inside;
    }
    from = to;
  }
  return inside;
}

/** Whether the straight way between two places crosses a side of the polygon. */
export function crosses(a: Place, b: Place, polygon: readonly Place[]): boolean {
  let from = polygon.at(-1);
  for (const to of polygon) {
    if (from && turns(a, b, from) !== turns(a, b, to) && turns(from, to, a) !== turns(from, to, b))
      return true;
    from = to;
  }
  return false;
}

/** Whether the way from `a` over `b` to `c` turns left. */
function turns(a: Place, b: Place, c: Place): boolean {
  return (b.lon - a.lon) * (c.lat - a.lat) - (b.lat - a.lat) * (c.lon - a.lon) > 0;
}

const metres_per_degree = 111_195;

/** Returns the place in this direction and distance, at most some kilometres away. */
export function offset(
  { lat, lon }: Place,
  { bearing_deg, metres }: { readonly bearing_deg: number; readonly metres: number },
): Place {
  const angle = (bearing_deg * Math.PI) / 180;
  const degrees = metres / metres_per_degree;
  const scale = Math.cos((lat * Math.PI) / 180);
  return { lat: lat + degrees * Math.cos(angle), lon: lon + (degrees * Math.sin(angle)) / scale };
}

/** Returns the distance from a place to the nearest side of a polygon in metres. */
export function distanceToSides_m(place: Place, polygon: readonly Place[]): number {
  const scale = Math.cos((place.lat * Math.PI) / 180);
  const local = ({ lat, lon }: Place): Metres => [
    (lat - place.lat) * metres_per_degree,
    (lon - place.lon) * metres_per_degree * scale,
  ];
  let nearest_m = Number.POSITIVE_INFINITY;
  let from = polygon.at(-1);
  for (const to of polygon) {
    if (from) nearest_m = Math.min(nearest_m, distanceFromOrigin_m(local(from), local(to)));
    from = to;
  }
  return nearest_m;
}

type Metres = readonly [north_m: number, east_m: number];

/** Distance of the origin to the straight way between two points. */
function distanceFromOrigin_m([a_north, a_east]: Metres, [b_north, b_east]: Metres): number {
  const [north, east] = [b_north - a_north, b_east - a_east];
  const length_squared = north * north + east * east;
  const along = length_squared === 0 ? 0 : -(a_north * north + a_east * east) / length_squared;
  const share = Math.max(0, Math.min(1, along));
  return Math.hypot(a_north + share * north, a_east + share * east);
}
