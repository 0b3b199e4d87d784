/** Preconditions of a circle: all of it must be within the local limits. */
import type { MavlinkOptions } from '../options.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { Height } from './altitude.ts';
import { admitTarget } from './gate.ts';
import { distance_m, distanceToSides_m, type Place } from './geo.ts';
import { orbitOf, type Orbit } from './orbit-order.ts';
import { texts } from './texts.ts';

export type OrbitLimits = Pick<MavlinkOptions, 'goto'>;

/** PX4 ignores a speed that it cannot fly on the circle, and accepts the command. */
const px4_speed_max_mps = 10;
const px4_acceleration_max_mps2 = 2;

/** Returns the heights of a circle that may be flown, or the reason against it. */
export function admitOrbit(
  orbit: Orbit,
  situation: Situation,
  { goto: options }: OrbitLimits,
): Height | string {
  if (!orbitOf(situation)) return texts.no_orbit(situation.kind);
  const height = admitTarget(orbit, situation, options);
  if (typeof height === 'string') return height;
  const { position, home } = situation;
  const { radius_m, speed_mps } = orbit;
  const isTooFar = (from: Place | undefined): boolean =>
    from !== undefined && distance_m(orbit, from) + radius_m > options.distance_max_m;
  if (isTooFar(position)) return texts.orbit_far('the vehicle', options.distance_max_m);
  if (isTooFar(home)) return texts.orbit_far('home', options.distance_max_m);
  if (options.geofence && distanceToSides_m(orbit, options.geofence) < radius_m) return texts.orbit_outside;
  const fastest_mps = Math.min(px4_speed_max_mps, Math.sqrt(px4_acceleration_max_mps2 * radius_m));
  return speed_mps !== undefined && speed_mps >= fastest_mps
    ? texts.orbit_fast(speed_mps, radius_m, fastest_mps.toFixed(1))
    : height;
}
