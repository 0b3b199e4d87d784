/** Classifies the sender of a heartbeat: autopilot, kind of vehicle, or component of a vehicle. */
import type { Messages } from '../wire/messages.ts';

export type Autopilot = 'ardupilot' | 'px4' | 'other';
/** Kinds that differ in their modes and in what is safe. */
export type Kind = 'copter' | 'plane' | 'vtol' | 'rover' | 'sub' | 'blimp' | 'other';

/** Kinds that go to no target and follow no mission, or whose altitude frames are not known. */
export const untargeted: ReadonlySet<Kind> = new Set(['sub', 'blimp', 'other']);

const autopilot_ardupilot = 3;
const autopilot_invalid = 8;
const autopilot_px4 = 12;

/** MAV_TYPE of ground stations and antenna trackers: not part of a vehicle. */
const station_types: ReadonlySet<number> = new Set([5, 6]);
/** MAV_TYPE of parts of a vehicle, with the name and the asset type of the part. */
const parts: ReadonlyMap<number, { readonly part: string; readonly asset: 'camera' | 'sensor' }> = new Map([
  [18, { part: 'companion computer', asset: 'sensor' }],
  [26, { part: 'gimbal', asset: 'sensor' }],
  [27, { part: 'ADS-B receiver', asset: 'sensor' }],
  [30, { part: 'camera', asset: 'camera' }],
  [31, { part: 'charging station', asset: 'sensor' }],
  [32, { part: 'FLARM', asset: 'sensor' }],
  [33, { part: 'servo controller', asset: 'sensor' }],
  [34, { part: 'open drone id', asset: 'sensor' }],
  [36, { part: 'battery', asset: 'sensor' }],
  [37, { part: 'parachute', asset: 'sensor' }],
  [38, { part: 'log recorder', asset: 'sensor' }],
  [39, { part: 'on-screen display', asset: 'sensor' }],
  [40, { part: 'IMU', asset: 'sensor' }],
  [41, { part: 'GPS', asset: 'sensor' }],
  [42, { part: 'winch', asset: 'sensor' }],
]);

const models: ReadonlyMap<number, { readonly name: string; readonly kind: Kind }> = new Map([
  [1, { name: 'Plane', kind: 'plane' }],
  [2, { name: 'Quadrotor', kind: 'copter' }],
  [3, { name: 'Coaxial helicopter', kind: 'copter' }],
  [4, { name: 'Helicopter', kind: 'copter' }],
  [7, { name: 'Airship', kind: 'blimp' }],
  [8, { name: 'Balloon', kind: 'other' }],
  [9, { name: 'Rocket', kind: 'other' }],
  [10, { name: 'Rover', kind: 'rover' }],
  [11, { name: 'Boat', kind: 'rover' }],
  [12, { name: 'Submarine', kind: 'sub' }],
  [13, { name: 'Hexarotor', kind: 'copter' }],
  [14, { name: 'Octorotor', kind: 'copter' }],
  [15, { name: 'Tricopter', kind: 'copter' }],
  [19, { name: 'VTOL', kind: 'vtol' }],
  [20, { name: 'VTOL', kind: 'vtol' }],
  [21, { name: 'VTOL', kind: 'vtol' }],
  [22, { name: 'VTOL', kind: 'vtol' }],
  [23, { name: 'VTOL', kind: 'vtol' }],
  [24, { name: 'VTOL', kind: 'vtol' }],
  [25, { name: 'VTOL', kind: 'vtol' }],
  [29, { name: 'Dodecarotor', kind: 'copter' }],
  [35, { name: 'Decarotor', kind: 'copter' }],
  [43, { name: 'Multirotor', kind: 'copter' }],
]);

interface Heartbeat {
  readonly type: number;
  readonly autopilot: number;
}

/** An autopilot, a part of a vehicle, or a station, which is ignored. */
export type Sender =
  | { readonly is: 'autopilot' }
  | { readonly is: 'part'; readonly part: string; readonly asset: 'camera' | 'sensor' }
  | { readonly is: 'station' };

export function senderOf({ type, autopilot }: Heartbeat): Sender {
  if (station_types.has(type)) return { is: 'station' };
  const part = parts.get(type);
  if (part) return { is: 'part', ...part };
  if (autopilot !== autopilot_invalid) return { is: 'autopilot' };
  return { is: 'part', part: `component of type ${type}`, asset: 'sensor' };
}

export function autopilotOf({ autopilot }: Heartbeat): Autopilot {
  if (autopilot === autopilot_ardupilot) return 'ardupilot';
  return autopilot === autopilot_px4 ? 'px4' : 'other';
}

export function kindOf(type: number): Kind {
  return models.get(type)?.kind ?? 'other';
}

/** Returns the asset type: rovers, boats and submarines are vehicles, all others drones. */
export function assetTypeOf(kind: Kind): 'drone' | 'vehicle' {
  return kind === 'rover' || kind === 'sub' ? 'vehicle' : 'drone';
}

/** Returns the model name of a MAV_TYPE; null for an unnamed type. */
export function modelOf(type: number): string | null {
  return models.get(type)?.name ?? null;
}

// Recognises quadplanes of ArduPilot, which have the modes of Plane and may announce the type of a plane or of a multicopter
// (Q_MAV_TYPE). An ArduCopter reports the VTOL state of a hovering multicopter too, and an ArduPlane before 4.2 reports none
// (ArduPilot#19137), so that a hovering vehicle that announces a multicopter, and a plane, is asked for a parameter that only planes have.

/** MAV_VTOL_STATE. */
const state_undefined = 0;
const state_multicopter = 3;
/** Whether the lift motors are in use; only ArduPlane has it. */
export const quadplane_parameter = 'Q_ENABLE';
/** At 20 % loss in each direction one of 3,500 quadplanes is missed, until it flies forward or restarts. */
const requests_max = 8;
const request_pause_ms = 1_000;
/** A float without its sign: 0 is 0. */
const magnitude_bits = 0x7f_ff_ff_ff;

export class QuadplaneEvidence {
  #is_quadplane = false;
  #is_in_doubt = false;
  #requests = 0;
  #requested_ms = Number.NEGATIVE_INFINITY;

  get isQuadplane(): boolean {
    return this.#is_quadplane;
  }

  /** Notes the MAV_TYPE of an ArduPilot. */
  receiveType(mav_type: number): void {
    this.#is_in_doubt ||= kindOf(mav_type) === 'plane';
  }

  /** Notes the VTOL state of an ArduPilot that announces this MAV_TYPE. */
  receiveState({ vtol_state }: Messages['EXTENDED_SYS_STATE'], mav_type: number): void {
    if (vtol_state === state_undefined) return;
    const kind = kindOf(mav_type);
    if (kind === 'copter' && vtol_state === state_multicopter) this.#is_in_doubt = true;
    else if (kind === 'copter' || kind === 'plane' || kind === 'vtol') this.#is_quadplane = true;
  }

  receiveParameter({ param_id, param_value }: Messages['PARAM_VALUE']): void {
    if (param_id !== quadplane_parameter) return;
    this.#requests = requests_max;
    if ((param_value & magnitude_bits) !== 0) this.#is_quadplane = true;
  }

  /** Whether the parameter is to be requested now. */
  isDue(now_ms: number): boolean {
    if (!this.#is_in_doubt || this.#is_quadplane || this.#requests >= requests_max) return false;
    if (now_ms - this.#requested_ms < request_pause_ms) return false;
    this.#requested_ms = now_ms;
    this.#requests += 1;
    return true;
  }

  restart(): void {
    this.#is_quadplane = false;
    this.#is_in_doubt = false;
    this.#requests = 0;
  }
}
