/** What must be true before a command is sent. Autopilots accept nearly everything, so that it is decided here. */
import { type Height, heightOf } from './altitude.ts';
import { distance_m, isInside, type Place } from './geo.ts';
import type { MavlinkOptions } from './options.ts';
import { type ModeName, modeNumbers } from './modes.ts';
import type { Situation } from './situation.ts';

export interface Waypoint extends Place {
  readonly alt_m: number;
}

/** Each function answers the sentence that says why not, or undefined. */
type Obstacle = string | undefined;

export function obstacleToArm(situation: Situation, options: MavlinkOptions['arm']): Obstacle {
  if (situation.armed === null) return no_heartbeat;
  if (options.require_position && !situation.position) return no_position;
  if (!options.require_pre_arm_check || situation.pre_arm_check !== false) return undefined;
  const reasons = situation.pre_arm_reasons.join('; ');
  return `its own checks before arming fail${reasons === '' ? '' : `: ${reasons}`}`;
}

export function obstacleToDisarm({ armed, airborne }: Situation): Obstacle {
  if (armed === null) return no_heartbeat;
  return armed && airborne === true ? 'it is in the air, and would fall' : undefined;
}

export function obstacleToReturn({ armed }: Situation): Obstacle {
  if (armed === null) return no_heartbeat;
  return armed ? undefined : on_the_ground;
}

export function obstacleToMode(situation: Situation, mode: ModeName): Obstacle {
  const { armed, autopilot, kind, modes } = situation;
  if (armed === null) return no_heartbeat;
  if (!modeNumbers(autopilot, kind, mode, modes))
    return `a vehicle of this kind (${autopilot} ${kind}) has no mode ${mode}`;
  return (mode === 'RTL' || mode === 'LAND') && !armed ? on_the_ground : undefined;
}

/** A target that may be sent, or the sentence that says why not. */
export function admitTarget(
  target: Waypoint,
  situation: Situation,
  options: MavlinkOptions['goto'],
): Height | string {
  const { position, home } = situation;
  const obstacle = obstacleToFly(situation);
  if (obstacle !== undefined) return obstacle;
  if (!position) return no_position;
  if (!home) return 'its home position is not known';
  if (target.lat === 0 && target.lon === 0)
    return 'latitude 0, longitude 0 is no target but a value that was not set';
  const far = tooFar(target, position, 'the vehicle', options) ?? tooFar(target, home, 'home', options);
  if (far !== undefined) return far;
  if (options.geofence && !isInside(target, options.geofence))
    return 'the target lies outside the geofence (goto.geofence)';
  return situation.kind === 'rover'
    ? { amsl_m: home.alt_amsl_m, above_home_m: 0 }
    : admitHeight(target.alt_m, situation, options);
}

function obstacleToFly({ autopilot, kind, armed, airborne, estimator }: Situation): Obstacle {
  if (autopilot === 'other')
    return 'goto_waypoint is only known to be safe with ArduPilot and PX4, and its autopilot is neither';
  if (kind === 'other' || kind === 'sub')
    return `goto_waypoint is not known to be safe for a vehicle of its kind (${kind})`;
  if (armed === null) return no_heartbeat;
  if (!armed) return 'it is not armed';
  if (kind !== 'rover' && airborne !== true)
    return airborne === null ? 'it is not known to be in the air' : 'it is not in the air';
  if (estimator?.ok !== false) return undefined;
  return `its position estimate is not healthy: ${estimator.reasons.join(', ')}`;
}

function tooFar(
  target: Place,
  from: Place,
  what: string,
  { distance_max_m }: MavlinkOptions['goto'],
): Obstacle {
  const metres = Math.round(distance_m(target, from));
  return metres > distance_max_m
    ? `the target is ${metres} m from ${what}, and ${distance_max_m} m are allowed (goto.distance_max_m)`
    : undefined;
}

function admitHeight(alt_m: number, situation: Situation, options: MavlinkOptions['goto']): Height | string {
  const { datum, height_min_m, height_max_m } = options;
  const height = heightOf(alt_m, datum, situation);
  if (typeof height === 'string') return height;
  if (height.above_home_m >= height_min_m && height.above_home_m <= height_max_m) return height;
  return `the target is ${height.above_home_m} m above home (alt_m ${alt_m} is ${datum}), and ${height_min_m} to ${height_max_m} m are allowed (goto.height_min_m, goto.height_max_m)`;
}

const no_heartbeat = 'its state is not known: no heartbeat lately';
const no_position = 'it has no valid, fresh position';
const on_the_ground = 'it is disarmed; this mode would only keep it from being armed';
