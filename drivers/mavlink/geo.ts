/** Distances and areas on the ground, exact enough for the range of a drone. */

export interface Place {
  /** Degrees, WGS-84. */
  readonly lat: number;
  readonly lon: number;
}

const earth_radius_m = 6_371_008.8;
const radians_per_degree = Math.PI / 180;

/** Metres along the ground (haversine). */
export function distance_m(a: Place, b: Place): number {
  const dlat = (b.lat - a.lat) * radians_per_degree;
  const dlon = (b.lon - a.lon) * radians_per_degree;
  const cosines = Math.cos(a.lat * radians_per_degree) * Math.cos(b.lat * radians_per_degree);
  const h = Math.sin(dlat / 2) ** 2 + cosines * Math.sin(dlon / 2) ** 2;
  return 2 * earth_radius_m * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Whether the place lies in the polygon, whose sides are straight in latitude and longitude. */
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
