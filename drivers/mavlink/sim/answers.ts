/** Answers and actions of the simulated vehicle, as observed of both autopilots. */
import type { Messages } from '../wire/messages.ts';
import { assetTypeOf } from '../reports/kind.ts';
import { offset } from '../vehicles/geo.ts';
import {
  arduplane_landing_mode,
  arduplane_takeoff_mode,
  ardurover_hold_mode,
  ardusub_surface_mode,
  mode_names,
  modeNumbers,
} from '../vehicles/modes.ts';
import type { Flight } from './flight.ts';
import { type SimHold, simHoldNumbers, type SimState } from './telemetry.ts';

export interface Answer {
  /** MAV_RESULT. */
  readonly result: number;
  /** Sent after the answer. */
  readonly texts?: readonly string[];
}

export const accepted = 0;
const rejected = 1;
const denied = 2;
const unsupported = 3;
const failed = 4;

const command_return = 20;
const command_land = 21;
const command_takeoff = 22;
const command_set_mode = 176;
const command_change_speed = 178;
const command_orbit = 34;
const command_reposition = 192;
const command_mission_start = 300;
const command_set_home = 179;
const command_yaw = 115;
const command_fence = 207;
const command_arm = 400;
const command_run_checks = 401;
const frames_relative: ReadonlySet<number> = new Set([3, 6]);
const frames_amsl: ReadonlySet<number> = new Set([0, 5]);
const change_mode = 1;
/** Of arming and disarming: without the checks (ArduPilot#2353). */
const forced = 21_196;
const orbit_speed_max_mps = 10;
const orbit_acceleration_max_mps2 = 2;

type Answerable = Pick<SimState, 'climb' | 'hasFence' | 'parameters' | 'pre_arm_ok'> & SimHold;

/** Executes `COMMAND_LONG`. */
export function answerLong(fields: Messages['COMMAND_LONG'], state: Answerable): Answer {
  const { flight, autopilot } = state;
  switch (fields.command) {
    case command_arm:
      return fields.param1 === 1 ? arm(state) : disarm(fields, state);
    case command_run_checks:
      return runChecks(state);
    case command_return:
      flight.mode = 'RTL';
      return { result: accepted };
    case command_land:
      flight.mode = 'LAND';
      return { result: accepted };
    case command_set_mode:
      return setMode(fields, state);
    case command_reposition:
      return autopilot === 'ardupilot' ? { result: unsupported } : hold(fields, flight);
    case command_takeoff:
      return takeOff(fields, state);
    case command_mission_start:
      return startMission(state);
    case command_change_speed:
      flight.speed_mps = fields.param2;
      return { result: accepted };
    default:
      return answerSetting(fields, state);
  }
}

function answerSetting(fields: Messages['COMMAND_LONG'], state: Answerable): Answer {
  switch (fields.command) {
    case command_set_home:
      return setHome({ ...fields, lat: fields.param5, lon: fields.param6, alt: fields.param7 }, state.flight);
    case command_yaw:
      return turn(fields, state);
    case command_fence:
      return enableFence(fields, state);
    default:
      return { result: unsupported };
  }
}

interface HomeWanted extends Pick<Messages['COMMAND_LONG'], 'param1'> {
  readonly lat: number;
  readonly lon: number;
  readonly alt: number;
}

function setHome({ param1, lat, lon, alt }: HomeWanted, flight: Flight): Answer {
  const here = { lat: flight.lat, lon: flight.lon, alt_amsl_m: flight.home.alt_amsl_m + flight.height_m };
  flight.setHome(param1 === 1 ? here : { lat, lon, alt_amsl_m: alt });
  return { result: accepted };
}

/** ArduCopter turns in GUIDED; PX4 does not have the command. */
function turn({ param1 }: Messages['COMMAND_LONG'], { autopilot, flight }: Answerable): Answer {
  if (autopilot === 'px4') return { result: unsupported };
  if (flight.mode !== 'GUIDED') return { result: failed };
  flight.heading_deg = param1;
  return { result: accepted };
}

/** PX4 has no such command: its parameter GF_ACTION decides. */
function enableFence(
  { param1 }: Messages['COMMAND_LONG'],
  { autopilot, hasFence, parameters }: Answerable,
): Answer {
  if (autopilot === 'px4') return { result: unsupported };
  if (param1 === 1 && !hasFence) return { result: failed };
  parameters.set('FENCE_ENABLE', { value: param1, isInteger: true });
  return { result: accepted };
}

/** Executes `COMMAND_INT`. */
export function answerInt(fields: Messages['COMMAND_INT'], { autopilot, flight }: Answerable): Answer {
  if (fields.command === command_orbit && autopilot === 'px4') return orbit(flight, fields);
  if (fields.command === command_set_home)
    return setHome({ ...fields, lat: fields.x / 1e7, lon: fields.y / 1e7, alt: fields.z }, flight);
  if (fields.command !== command_reposition) return { result: unsupported };
  const { frame, z, param2 } = fields;
  const may_change = (param2 & change_mode) !== 0;
  if (autopilot === 'px4') {
    if (!may_change) return { result: unsupported };
    // The frame is ignored: the altitude counts from the sea level.
    return flyTo(flight, fields, z - flight.home.alt_amsl_m);
  }
  if (!may_change && flight.mode !== 'GUIDED') return { result: denied };
  if (frames_relative.has(frame)) return flyTo(flight, fields, z);
  return frames_amsl.has(frame) ? flyTo(flight, fields, z - flight.home.alt_amsl_m) : { result: denied };
}

function flyTo(flight: Flight, { x, y }: Messages['COMMAND_INT'], height_m: number): Answer {
  flight.target = { lat: x / 1e7, lon: y / 1e7, height_m };
  flight.mode = 'GUIDED';
  return { result: accepted };
}

/** PX4 accepts each circle, and keeps its speed where it cannot fly the requested one. */
function orbit(flight: Flight, { param1, param2, x, y, z }: Messages['COMMAND_INT']): Answer {
  const isFlyable =
    param2 < orbit_speed_max_mps && param2 ** 2 < orbit_acceleration_max_mps2 * Math.abs(param1);
  const center = { lat: x / 1e7, lon: y / 1e7, height_m: z - flight.home.alt_amsl_m };
  flight.circle = { ...center, radius_m: param1, speed_mps: isFlyable ? param2 : 1 };
  flight.mode = 'ORBIT';
  return { result: accepted };
}

/** Without a place a PX4 stops where it is. */
function hold({ param4, param5 }: Messages['COMMAND_LONG'], flight: Flight): Answer {
  if (Number.isNaN(param5)) {
    if (!Number.isNaN(param4)) flight.heading_deg = ((param4 * 180) / Math.PI + 360) % 360;
    flight.mode = 'LOITER';
    flight.target = undefined;
  }
  return { result: accepted };
}

function startMission({ autopilot, flight }: Answerable): Answer {
  // A PX4 arms for it.
  if (autopilot === 'px4') flight.armed = true;
  if (!flight.armed) return { result: failed };
  flight.mode = 'AUTO';
  return { result: accepted };
}

function takeOff({ param7 }: Messages['COMMAND_LONG'], { autopilot, flight, kind }: Answerable): Answer {
  if (!flight.armed || (autopilot === 'ardupilot' && flight.mode !== 'GUIDED')) return { result: failed };
  // A quadplane climbs from where it stands.
  const from_m = kind === 'vtol' ? flight.height_m : 0;
  const height_m = autopilot === 'px4' ? param7 - flight.home.alt_amsl_m : from_m + param7;
  flight.target = { lat: flight.lat, lon: flight.lon, height_m };
  if (autopilot === 'px4') flight.mode = 'TAKEOFF';
  return { result: accepted };
}

/** A plane climbs ahead, and circles in the same mode. */
function climbAhead({ flight, climb }: Answerable): void {
  const place = offset(flight, { bearing_deg: flight.heading_deg, metres: climb.distance_m });
  flight.mode = 'TAKEOFF';
  flight.holds_after_takeoff = false;
  flight.target = { ...place, height_m: flight.height_m + climb.alt_m };
}

function arm({ autopilot, flight, gps, kind, pre_arm_ok }: Answerable): Answer {
  if (pre_arm_ok && (gps === 'ok' || kind === 'sub')) {
    flight.armed = true;
    return { result: accepted };
  }
  return autopilot === 'px4'
    ? { result: rejected, texts: ['Arming denied: Resolve system health failures first\t'] }
    : { result: failed, texts: [gps === 'ok' ? 'Arm: Compass not calibrated' : 'PreArm: GPS 1: Bad fix'] };
}

/** Accepted whatever the result is, which the texts report. */
function runChecks({ flight, gps, pre_arm_ok }: Answerable): Answer {
  if (flight.armed) return { result: rejected };
  const reasons = [
    ...(pre_arm_ok ? [] : ['PreArm: Compass not calibrated']),
    ...(gps === 'ok' ? [] : ['PreArm: GPS 1: Bad fix']),
  ];
  return { result: accepted, texts: reasons };
}

/** In the air all refuse it unless forced: ArduCopter (AP_Arming_Copter.cpp), ArduPlane (ArduPilot#20234), PX4 (Commander). */
function disarm({ param2 }: Messages['COMMAND_LONG'], { autopilot, flight, kind }: Answerable): Answer {
  const isFlying = flight.isAirborne || flight.believes_airborne;
  if (param2 !== forced && isFlying && flight.armed && assetTypeOf(kind) === 'drone') {
    return autopilot === 'px4'
      ? { result: rejected, texts: ['Disarming denied: not landed\t'] }
      : { result: failed };
  }
  flight.armed = false;
  return { result: accepted };
}

/** Modes of an ArduPlane, ArduRover or ArduSub beside those of the interface. Returns whether it is one of them. */
function setOwnMode(mode: number, state: Answerable): boolean {
  if (state.kind === 'plane') return setPlaneMode(mode, state);
  if (state.kind === 'rover' && mode === ardurover_hold_mode) {
    state.flight.mode = 'MOTORS_OFF';
    return true;
  }
  if (state.kind !== 'sub' || mode !== ardusub_surface_mode) return false;
  state.flight.mode = 'SURFACE';
  return true;
}

function setPlaneMode(mode: number, state: Answerable): boolean {
  if (mode === arduplane_takeoff_mode) climbAhead(state);
  else if (mode === arduplane_landing_mode) state.flight.mode = 'LAND';
  return mode === arduplane_takeoff_mode || mode === arduplane_landing_mode;
}

function setMode({ param2, param3 }: Messages['COMMAND_LONG'], state: Answerable): Answer {
  const { autopilot, flight, kind } = state;
  const mode = mode_names.findLast((name) => {
    const numbers = modeNumbers(autopilot, kind, name);
    return numbers?.main === param2 && numbers.sub === param3;
  });
  if (autopilot === 'ardupilot' && simHoldNumbers(state)?.main === param2) {
    flight.mode =
      simHoldNumbers(state)?.main === ardurover_hold_mode && kind === 'rover' ? 'MOTORS_OFF' : 'HOLD';
    flight.target = undefined;
    return { result: accepted };
  }
  if (autopilot === 'ardupilot' && setOwnMode(param2, state)) return { result: accepted };
  if (mode) {
    flight.mode = mode;
    if (mode !== 'GUIDED') flight.target = undefined;
    return { result: accepted };
  }
  // PX4 accepts unknown modes and does nothing.
  return autopilot === 'px4' ? { result: accepted } : { result: failed, texts: [`No such mode ${param2}`] };
}
