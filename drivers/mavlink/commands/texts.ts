/** Refusals and outcomes of vehicle commands that people read; tests refer to them by name. */
import { notSent } from '../../../src/platform/errors.ts';
import type { Autopilot, Kind } from '../reports/kind.ts';
import type { ModeName } from '../vehicles/modes.ts';

export const texts = {
  home_unknown: 'home position unknown; wait until the vehicle reports it',
  ellipsoid_unknown:
    'alt_m is above the ellipsoid, and the receiver does not report that height (goto.datum)',
  heartbeat_missing: 'vehicle state unknown: no recent heartbeat',
  position_missing: 'no valid, recent position',
  pre_arm_failed: (reasons: readonly string[]) =>
    `pre-arm checks fail${reasons.length === 0 ? '' : `: ${reasons.join('; ')}`}`,
  airborne:
    'vehicle is airborne; a multicopter that has crashed is disarmed once it has lain still on its side or its back for 3 s, any other by emergency_stop where that is configured',
  airborne_already: 'vehicle is airborne already',
  disarmed_already: 'vehicle is disarmed already',
  no_takeoff: (kind: string) => `takeoff does not support vehicles of kind ${kind}`,
  takeoff_param: (name: string) => `its parameter ${name} is unknown, so the height of its climb is unknown`,
  takeoff_height: (height_m: number, alt_m: number) =>
    `it climbs to ${height_m} m above home (TKOFF_ALT is ${alt_m} m above where it stands); set height_m to that, or change the parameter in the ground station`,
  takeoff_course_unknown:
    'its heading is unknown, so its climb cannot be checked against the geofence (goto.geofence)',
  takeoff_mode: 'this autopilot takes off in GUIDED only; set that mode first',
  no_speed: (kind: string) => `set_speed does not support vehicles of kind ${kind}`,
  disarmed_mode: 'vehicle is disarmed, and this mode would prevent arming',
  mode_unsupported: (vehicle: string, mode: string) => `${vehicle} has no mode ${mode}`,
  stick_down: (channel: number, pulse_us: number) =>
    `the throttle of its transmitter is low (channel ${channel} at ${pulse_us} us), by which it sinks to the ground in LOITER; send hold, which keeps its height, or have the stick moved to its middle first`,
  stick_leads: (channel: number, pulse_us: number) =>
    `its height follows the throttle stick of its transmitter now (channel ${channel} at ${pulse_us} us): with the stick down it sinks to the ground; hold keeps its height`,
  stick_unknown:
    'its height follows the throttle stick of its transmitter now, whose position is not known: with the stick down it sinks to the ground; hold keeps its height',
  no_transmitter:
    'no transmitter is received, and its height follows one now: older firmware sinks to the ground; hold keeps its height',
  hold_caveats: {
    drifts: 'it has no position, so its motors are off and it drifts',
    keeps_depth: 'it has no position, so it keeps its depth and drifts',
    follows_stick:
      'its height follows the throttle stick of its transmitter; without a transmitter it sinks at 0.5 m/s',
  },
  autopilot_unsupported: 'goto_waypoint supports only ArduPilot and PX4',
  kind_unsupported: (kind: string) => `goto_waypoint does not support vehicles of kind ${kind}`,
  not_armed: 'vehicle is not armed',
  airborne_unknown: 'vehicle does not report whether it is airborne',
  not_airborne: 'vehicle is not airborne',
  estimator_unhealthy: (reasons: readonly string[]) =>
    `position estimate is unhealthy: ${reasons.join(', ')}`,
  target_unset: 'target coordinates are not set (latitude 0, longitude 0)',
  target_far: (metres: number, from: string, max_m: number) =>
    `target is ${metres} m from ${from}; ${max_m} m are allowed (goto.distance_max_m)`,
  target_outside: 'target is outside the geofence (goto.geofence)',
  way_outside: 'the straight way to the target leaves the geofence (goto.geofence)',
  takeoff_below: (height_m: number, stands_m: number) =>
    `height_m ${height_m} is not above where it stands, ${stands_m} m above home`,
  target_height: (height_m: number, given: string, { min_m, max_m }: { min_m: number; max_m: number }) =>
    `target is ${height_m} m above home (${given}); ${min_m} to ${max_m} m are allowed (goto.height_min_m, goto.height_max_m)`,
  about: (vehicle: string, reason: string) => `${vehicle}: ${reason}`,
  needs_mavlink2: (what: string) =>
    `${what} needs MAVLink 2, and the vehicle sends MAVLink 1; set its port to MAVLink 2 (SERIALn_PROTOCOL=2, MAV_PROTO_VER=2)`,
  high_latency:
    'reports by satellite only, and its position and state are not accurate enough for this command',
  time_short: (left_s: string) => `too late: ${left_s} s left, too short to observe the effect`,
  task_old: (age_s: string, max_s: number) =>
    `too late: the task is ${age_s} s old; ${max_s} s are allowed (task_age_max_s)`,
  link_stalled: (vehicle: string) => `the link to ${vehicle} accepts no frames now`,
  not_sent: notSent,
  executing: (vehicle: string) => `${vehicle} is executing the command`,
  accepted: (vehicle: string, what: string) => `${vehicle} accepted ${what}`,
  sent_as_message: (vehicle: string, what: string) =>
    `${vehicle} does not support the command and was sent ${what} as the older message`,
  unobserved: (sent: string, expected: string, within_s: string) =>
    `${sent}, but ${expected} was not observed within ${within_s} s`,
  unanswered: (vehicle: string, what: string, expected: string) =>
    `${vehicle} did not answer ${what}, and ${expected} was not observed; it may have acted`,
  not_attributed: (vehicle: string, what: string, expected: string) =>
    `another station uses the ids of this kit, so answers of ${vehicle} to ${what} are ignored, and ${expected} was not observed; it may have acted`,
  link_lost: (vehicle: string, what: string, silence_s: string) =>
    `link to ${vehicle} lost after ${what} was sent (no frame for ${silence_s} s)`,
  interrupted: (vehicle: string, what: string) =>
    `${vehicle} restarted, or another sender took its place, after ${what} was sent`,
  stopped: (vehicle: string, what: string) => `the task was stopped after ${what} was sent to ${vehicle}`,
  unknown_outcome: (reason: string) => `${reason}; outcome unknown`,
  refused: (vehicle: string, what: string, result: string) => `${vehicle} refused ${what} (${result})`,
  ambiguous: (answer: string) => `${answer}; this may be the late answer to an earlier command`,
  contradicted: (refusal: string, expected: string) => `${refusal}, but ${expected} was observed`,
  fallback_kind: 'this firmware does not support it on a vehicle of this kind',
  fallback_mode: 'this firmware accepts targets in GUIDED only; set that mode first',
  fallback_unsent: 'the older message for it was not sent, since the link accepts no frames now',
  left: (vehicle: string, metres: number) => `${vehicle} is ${metres} m from its target`,
  not_arrived: (vehicle: string, metres: string) =>
    `${vehicle} did not arrive in time (${metres}); it continues unless it is stopped`,
  arrival_stopped: (vehicle: string, metres: string) =>
    `the task was stopped on the way (${metres}); ${vehicle} continues unless it is stopped`,
  metres_left: (metres: number | undefined) =>
    metres === undefined ? 'distance unknown' : `${metres} m left`,
  abandoned: (vehicle: string, mode: string) => `${vehicle} left its course: its flight mode is now ${mode}`,
  with_clock: (expected: string) => `${expected} with a clock that would show a restart`,
  clock_lost: (vehicle: string, what: string) =>
    `${vehicle} accepted ${what}, but sends no clock any more that would show a restart`,
  home_incomplete: 'give lat and lon together, and alt_amsl_m only with them',
  on_way_home: 'vehicle is on its way home; stop it first',
  turn_mode: 'this autopilot turns in GUIDED only; set that mode first',
  breached_at_once: (reason: string) => `${reason}: the vehicle would leave it at once`,
  fence_missing:
    'it reports no fence: no areas are stored, or FENCE_TYPE names neither areas nor a limit of height or distance',
  fence_enabled: 'its own fence is enabled (FENCE_ENABLE), and may not contain the target or the way to it',
  expects_home: 'the new home in its report',
  expects_heading: 'the heading in its report',
  expects_fence: 'an enabled fence in its report',
  expects_answer: 'its answer',
  expects_airborne: 'an airborne vehicle',
  no_orbit: (kind: string) => `orbit does not support vehicles of kind ${kind} with this autopilot`,
  orbit_far: (from: string, max_m: number) =>
    `the circle is farther than ${max_m} m from ${from} (goto.distance_max_m)`,
  orbit_outside: 'the circle leaves the geofence (goto.geofence)',
  orbit_fast: (speed_mps: number, radius_m: number, below_mps: string) =>
    `speed ${speed_mps} m/s is too high for a radius of ${radius_m} m; below ${below_mps} m/s are possible`,
  expects_orbit: 'the circle in its report',
  expects_hold: 'a hold mode',
  expects_armed: 'an armed vehicle',
  expects_disarmed: 'a disarmed vehicle',
  expects_homeward: 'a mode that returns home',
  expects_mode: (mode: string) => `mode ${mode}`,
  expects_surface: 'mode SURFACE, or ALT_HOLD at the surface,',
  expects_target: 'the target in its report',
} as const;

/** What each mode of `set_mode` does on a kind of vehicle, for people who choose one. */
type Effects = Readonly<Partial<Record<Lowercase<ModeName>, string>>>;

const mission = 'starts or resumes the mission';

const ardupilot: Readonly<Record<Kind, Effects>> = {
  copter: {
    guided: 'stops, hovers and waits for commands',
    auto: mission,
    loiter:
      "hovers, but climbs and sinks with the throttle stick of the pilot's transmitter: with the stick down it sinks to the ground (hold does not)",
    rtl: 'returns home and lands',
    land: 'lands where it is',
  },
  plane: {
    guided: 'circles where it is and waits for commands',
    auto: mission,
    loiter: 'circles where it is at its height',
    rtl: 'returns and circles above home',
    land: 'lands by itself, if it has the mode AUTOLAND',
  },
  vtol: {
    guided: 'flies forward, circles where it is and waits for commands',
    auto: mission,
    loiter: 'flies forward and circles where it is at its height',
    rtl: 'returns home; whether it lands there is set in the autopilot',
    land: 'lands vertically where it is',
  },
  rover: {
    guided: 'stops and waits for commands',
    auto: mission,
    loiter: 'stops; a boat keeps its place with its motors',
    rtl: 'drives home',
  },
  sub: { guided: 'stops and waits for commands', auto: mission },
  blimp: { loiter: 'stays where it is', rtl: 'returns home', land: 'stops its fins and drifts' },
  other: {},
};

const px4: Effects = {
  guided: 'stays where it is and waits for commands; a plane circles',
  auto: mission,
  loiter: 'stays where it is; a plane circles',
  rtl: 'returns home and lands',
  land: 'lands where it is',
};

/** Returns one sentence for each mode that the vehicle has. */
export function modeEffects({ autopilot, kind }: { autopilot: Autopilot; kind: Kind }): string {
  const effects = autopilot === 'px4' ? px4 : autopilot === 'ardupilot' ? ardupilot[kind] : {};
  return Object.entries(effects)
    .map(([name, effect]) => `${name.toUpperCase()}: ${effect}.`)
    .join(' ');
}
