/** The plane around the kit: distances, bearings and the scale of the map. Azimuthal equidistant, error below 0.1 % within 20 km. */

/** Mean radius of the Earth (IUGG), metres. */
const earth_m = 6_371_008.8;
const rad = Math.PI / 180;

/** @typedef {{ readonly lat: number, readonly lon: number }} Place */

/**
 * Metres east and north of `center`.
 * @param {Place} center
 * @param {Place} place
 * @returns {readonly [east_m: number, north_m: number]}
 */
export function project(center, place) {
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

/**
 * Formats distance and bearing as for radio voice, such as "320 m 045°".
 * @param {Place} from
 * @param {Place} to
 * @returns {string}
 */
export function bearingText(from, to) {
  const [east, north] = project(from, to);
  const distance = distanceText(Math.hypot(east, north));
  if (Math.hypot(east, north) < 1) return distance;
  const degrees = Math.round((Math.atan2(east, north) / rad + 360) % 360) % 360;
  return `${distance} ${String(degrees).padStart(3, '0')}°`;
}

/**
 * @param {number} m metres
 * @returns {string}
 */
export function distanceText(m) {
  if (m < 1_000) return `${Math.round(m)} m`;
  return `${(m / 1_000).toFixed(m < 10_000 ? 1 : 0)} km`;
}

/**
 * The largest of 1, 2, 5, 10, 20, ... that is not above `m`.
 * @param {number} m
 * @returns {number}
 */
export function roundDown(m) {
  const power = 10 ** Math.floor(Math.log10(Math.max(m, 1e-3)));
  return power * ([5, 2, 1].find((step) => step * power <= m) ?? 1);
}

/**
 * Decimal degrees with the hemisphere, about 0.1 m apart.
 * @param {Place} place
 * @returns {string}
 */
export function placeText({ lat, lon }) {
  return `${lat.toFixed(6)}, ${lon.toFixed(6)}`;
}
