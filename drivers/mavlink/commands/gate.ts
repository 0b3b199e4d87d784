/** Preconditions of each command. They are checked here because autopilots accept nearly every command. */
import { type Height, heightOf } from './altitude.ts';
import { crosses, distance_m, isInside, type Place } from '../vehicles/geo.ts';
import type { MavlinkOptions } from '../options.ts';
import { holdMode, type ModeName, modeNumbers } from '../vehicles/modes.ts';
import { untargeted } from '../reports/kind.ts';
import type { Situation } from '../vehicles/situation.ts';
import { texts } from './texts.ts';

export interface Waypoint extends Place {
  readonly alt_m: number;
}

/** The reason against a command, or undefined. */
type Obstacle = string | undefined;

/** What a vehicle that has just been received may still report. */
export const not_yet_reported: ReadonlySet<string> = new Set([
  texts.heartbeat_missing,
  texts.position_missing,
  texts.home_unknown,
  texts.airborne_unknown,
  texts.ellipsoid_unknown,
]);

export function obstacleToArm(situation: Situation, options: MavlinkOptions['arm']): Obstacle {
  if (situation.armed === null) return texts.heartbeat_missing;
  const needs_position = options.require_position ?? situation.kind !== 'sub';
  if (needs_position && !situation.position) return texts.position_missing;
  if (!options.require_pre_arm_check || situation.pre_arm_check !== false) return undefined;
  return texts.pre_arm_failed(situation.pre_arm_reasons);
}

export function obstacleToDisarm(situation: Situation): Obstacle {
  const { armed, airborne, isOverturned } = situation;
  if (armed === null) return texts.heartbeat_missing;
  return armed && airborne === true && !isOverturned ? texts.airborne : undefined;
}

/** Autopilots refuse to disarm a vehicle that takes itself for flying, unless they are forced. */
export function mustForceDisarm({ airborne, isOverturned }: Situation): boolean {
  return airborne === true && isOverturned;
}

export function obstacleToForcedDisarm(situation: Situation): Obstacle {
  return situation.isOverturned ? obstacleToDisarm(situation) : texts.airborne;
}

/** It stops the motors of any vehicle, whatever that reports of its flight. */
export function obstacleToStop({ armed }: Situation): Obstacle {
  return armed === false ? texts.disarmed_already : undefined;
}

/** Multicopters and VTOLs take off straight up from where they stand, an ArduPlane in its mode TAKEOFF. */
export function obstacleToTakeOff(situation: Situation): Obstacle {
  const { autopilot, kind, airborne } = situation;
  const has_takeoff = kind === 'copter' || kind === 'vtol' || isArduPlane(situation);
  if (autopilot === 'other' || !has_takeoff) return texts.no_takeoff(kind);
  const unarmed = obstacleUnarmed(situation);
  if (unarmed !== undefined) return unarmed;
  if (airborne !== false) return airborne === null ? texts.airborne_unknown : texts.airborne_already;
  return obstacleOnGround(situation);
}

export function isArduPlane({ autopilot, kind }: Pick<Situation, 'autopilot' | 'kind'>): boolean {
  return autopilot === 'ardupilot' && kind === 'plane';
}

function obstacleUnarmed({ armed }: Situation): Obstacle {
  if (armed === null) return texts.heartbeat_missing;
  return armed ? undefined : texts.not_armed;
}

function obstacleOnGround(situation: Situation): Obstacle {
  const { autopilot, position, home, estimator, mode } = situation;
  if (!position) return texts.position_missing;
  if (!home) return texts.home_unknown;
  if (estimator?.ok === false) return texts.estimator_unhealthy(estimator.reasons);
  const needs_guided = autopilot === 'ardupilot' && !isArduPlane(situation);
  return needs_guided && mode !== 'GUIDED' ? texts.takeoff_mode : undefined;
}

export function obstacleToHold(situation: Situation): Obstacle {
  const { armed, autopilot, kind } = situation;
  if (armed === null) return texts.heartbeat_missing;
  if (!holdMode(situation))
    return texts.mode_unsupported(`a vehicle of this kind (${autopilot} ${kind})`, 'hold');
  return armed ? undefined : texts.disarmed_mode;
}

/** The speed counts while the vehicle flies or drives autonomously. */
export function obstacleToSpeed(situation: Situation): Obstacle {
  const { autopilot, kind, airborne } = situation;
  if (autopilot === 'other' || untargeted.has(kind)) return texts.no_speed(kind);
  const unarmed = obstacleUnarmed(situation);
  if (unarmed !== undefined || kind === 'rover' || airborne === true) return unarmed;
  return airborne === null ? texts.airborne_unknown : texts.not_airborne;
}

export function obstacleToReturn({ armed, is_high_latency }: Situation): Obstacle {
  if (armed === null) return is_high_latency ? undefined : texts.heartbeat_missing;
  return armed ? undefined : texts.disarmed_mode;
}

/** What is not known now, such as during an outage, ends no command that makes a vehicle safer. */
export function obstacleToRepeat({ armed }: Situation): Obstacle {
  return armed === false ? texts.disarmed_mode : undefined;
}

export function obstacleToMode(situation: Situation, mode: ModeName): Obstacle {
  const { armed, autopilot, kind, modes, is_high_latency } = situation;
  if (armed === null && !is_high_latency) return texts.heartbeat_missing;
  if (!modeNumbers(autopilot, kind, mode, modes))
    return texts.mode_unsupported(`a vehicle of this kind (${autopilot} ${kind})`, mode);
  // A PX4 does not report over a satellite whether it is armed.
  return (mode === 'RTL' || mode === 'LAND') && armed === false ? texts.disarmed_mode : undefined;
}

/** Returns the heights of a target that may be sent, or the reason against it. */
export function admitTarget(
  target: Waypoint,
  situation: Situation,
  options: MavlinkOptions['goto'],
): Height | string {
  const { position, home } = situation;
  const obstacle = obstacleToFly(situation);
  if (obstacle !== undefined) return obstacle;
  if (!position) return texts.position_missing;
  if (!home) return texts.home_unknown;
  if (target.lat === 0 && target.lon === 0) return texts.target_unset;
  const far = tooFar(target, position, 'the vehicle', options) ?? tooFar(target, home, 'home', options);
  const against = far ?? outOfFence(position, target, options);
  if (against !== undefined) return against;
  // Rovers drive at the height of the ground: the altitude of their home may be nonsense.
  return situation.kind === 'rover'
    ? { amsl_m: position.alt_amsl_m, above_home_m: 0 }
    : admitHeight(target.alt_m, situation, options);
}

/** Returns the reason against a straight way that leaves the geofence. From outside of it, the way enters. */
export function outOfFence(from: Place, to: Place, { geofence }: MavlinkOptions['goto']): Obstacle {
  if (!geofence) return undefined;
  if (!isInside(to, geofence)) return texts.target_outside;
  return isInside(from, geofence) && crosses(from, to, geofence) ? texts.way_outside : undefined;
}

/** Returns the heights of a takeoff from where the vehicle stands, or the reason against it. */
export function admitTakeoff(
  height_m: number,
  situation: Pick<Situation, 'home' | 'position' | 'undulation_m'>,
): Height | string {
  const height = heightOf(height_m, 'relative', situation);
  const { home, position } = situation;
  if (typeof height === 'string' || !home || !position || height.amsl_m > position.alt_amsl_m) return height;
  return texts.takeoff_below(height_m, Math.round(position.alt_amsl_m - home.alt_amsl_m));
}

export function obstacleToFly({ autopilot, kind, armed, airborne, estimator }: Situation): Obstacle {
  if (autopilot === 'other') return texts.autopilot_unsupported;
  if (untargeted.has(kind)) return texts.kind_unsupported(kind);
  if (armed === null) return texts.heartbeat_missing;
  if (!armed) return texts.not_armed;
  if (kind !== 'rover' && airborne !== true)
    return airborne === null ? texts.airborne_unknown : texts.not_airborne;
  if (estimator?.ok !== false) return undefined;
  return texts.estimator_unhealthy(estimator.reasons);
}

/** Returns the reason against a place that is farther than the limit. */
export function tooFar(
  target: Place,
  from: Place,
  from_name: string,
  { distance_max_m }: MavlinkOptions['goto'],
): Obstacle {
  const metres = Math.round(distance_m(target, from));
  return metres > distance_max_m ? texts.target_far(metres, from_name, distance_max_m) : undefined;
}

/** Returns the heights that `alt_m` of the datum stands for, or the reason against them. */
export function admitHeight(
  alt_m: number,
  situation: Situation,
  options: MavlinkOptions['goto'],
): Height | string {
  const { datum, height_min_m, height_max_m } = options;
  const height = heightOf(alt_m, datum, situation);
  if (typeof height === 'string') return height;
  if (height.above_home_m >= height_min_m && height.above_home_m <= height_max_m) return height;
  const allowed = { min_m: height_min_m, max_m: height_max_m };
  return texts.target_height(height.above_home_m, `alt_m ${alt_m} is ${datum}`, allowed);
}
