/** Whether what a dish says of its position is a fix of now. Pure. */
import type { Fix } from '../../src/driver/driver.ts';
import type { DishLocation } from './messages.ts';

/** `PositionSource` that a receiver computes anew all the time; the others are what somebody told the dish, or old. */
const fresh: ReadonlySet<number> = new Set([
  4, // GPS
  5, // STARLINK
  6, // GNC_FUSED
  8, // GNC_GPS
  9, // GNC_PNT
]);
const by_gps: ReadonlySet<number> = new Set([4, 8]);

/**
 * The position without its height: the dish does not say whether that counts from the ellipsoid or from the sea.
 * Null when there is no fresh fix. `gps_valid` undefined: the dish tells nothing of its receiver.
 */
export function fixOf(
  { latitude, longitude, source }: DishLocation,
  gps_valid: boolean | undefined,
): Fix | null {
  if (!fresh.has(source) || (by_gps.has(source) && gps_valid === false)) return null;
  return { latitude, longitude, altitude: null, source: 'satellite', age_ms: 0 };
}
