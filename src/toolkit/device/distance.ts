/** Distances on the globe. */

/** A place in degrees, WGS-84. */
export interface Point {
  readonly latitude: number;
  readonly longitude: number;
}

/** Mean radius of the Earth. */
export const earth_radius_m = 6_371_009;
const radians = Math.PI / 180;

/** Metres between two places along a great circle of a sphere; within 0.6 % of the ellipsoid's. */
export function distance_m(a: Point, b: Point): number {
  const north = Math.sin(((b.latitude - a.latitude) * radians) / 2) ** 2;
  const east = Math.sin(((b.longitude - a.longitude) * radians) / 2) ** 2;
  const chord = north + Math.cos(a.latitude * radians) * Math.cos(b.latitude * radians) * east;
  return 2 * earth_radius_m * Math.asin(Math.min(1, Math.sqrt(chord)));
}
