/** Distances and areas on the ground, accurate enough for the range of a drone. */
import { distance_m as great_circle_m, type Point } from '../../../src/device/distance.ts';

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
