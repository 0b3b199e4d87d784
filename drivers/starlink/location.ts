/** Decides whether the position of a dish is a current fix. Pure. */
import type { Fix } from '../../src/driver/driver.ts';
import type { DishLocation } from './api/messages.ts';

/** `PositionSource` values that a receiver computes continuously; the others are configured or old. */
const fresh: ReadonlySet<number> = new Set([
  4, // GPS
  5, // STARLINK
  6, // GNC_FUSED
  8, // GNC_GPS
  9, // GNC_PNT
]);
const by_gps: ReadonlySet<number> = new Set([4, 8]);

/**
 * The position without its height: the dish does not specify whether it is above the ellipsoid or mean sea level.
 * Null when there is no fresh fix. `gps_valid` undefined: the dish does not report its receiver.
 */
export function fixOf(
  { latitude, longitude, source }: DishLocation,
  gps_valid: boolean | undefined,
): Fix | null {
  if (!fresh.has(source) || (by_gps.has(source) && gps_valid === false)) return null;
  return { latitude, longitude, altitude: null, source: 'satellite', age_ms: 0 };
}
