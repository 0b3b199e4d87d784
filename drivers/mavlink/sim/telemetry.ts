/** Messages of the simulated vehicle, filled as by the simulated autopilot. */
import { distance_m } from '../vehicles/geo.ts';
import { geofence_bit } from '../vehicles/situation.ts';
import { blank, type Messages } from '../wire/messages.ts';
import { assetTypeOf, type Kind } from '../reports/kind.ts';
import {
  arduplane_landing_mode,
  arduplane_takeoff_mode,
  ardurover_hold_mode,
  ardusub_depth_mode,
  ardusub_surface_mode,
  holdMode,
  mode_names,
  type ModeNumbers,
  modeNumbers,
  px4_orbit_mode,
  px4_takeoff_mode,
} from '../vehicles/modes.ts';
import type { Flight, SimMode } from './flight.ts';
import type { SimMissions } from './missions.ts';
import type { SimParameter } from './parameters.ts';

export interface SimState {
  readonly autopilot: 'ardupilot' | 'px4';
  /** MAV_TYPE. */
  readonly type: number;
  /** Whose modes it has. */
  readonly kind: Kind;
  readonly flight: Flight;
  readonly boot_ms: number;
  /** `lost`: no fix, and the last position is repeated, as ArduPilot does. */
  readonly gps: 'ok' | 'lost';
  readonly pre_arm_ok: boolean;
  /** 16 hexadecimal digits. */
  readonly uid: string;
  readonly missions: Pick<SimMissions, 'report'>;
  /** Pulse of the pilot's throttle stick; undefined: there is no transmitter. */
  readonly throttle_us: number | undefined;
  /** MAV_VTOL_STATE of a quadplane. */
  readonly vtol_state: number;
  readonly hasFence: boolean;
  readonly parameters: Map<string, SimParameter>;
  /** Where the TAKEOFF mode of a plane leads. */
  readonly climb: { readonly alt_m: number; readonly distance_m: number };
}

const undulation_m = 47.3;
const pre_arm_bit = 0x1000_0000;
/** PX4 shows another number while it stands still. */
const estimator_good = { ardupilot: 831, px4_ground: 1023, px4_air: 895 } as const;
const estimator_without_gps = 167;
const flight_software = { ardupilot: 0x04_06_00_ff, px4: 0x01_10_00_ff } as const;
const failed_compass = 32;
/** What a rover of ArduPilot reports as the altitude of its home, wherever it is. */
const rover_home_alt_mm = 190;
const radians_per_degree = Math.PI / 180;

const type_boat = 11;

/** Undefined: it has nothing to report now. */
type Build = { readonly [K in keyof Messages]?: (state: SimState) => Messages[K] | undefined };

/** By name. */
export const telemetry = {
  HEARTBEAT: ({ autopilot, flight, type, ...state }) => ({
    custom_mode: modeNumber({ ...state, autopilot, flight, type }, flight.mode),
    type,
    autopilot: autopilot === 'px4' ? 12 : 3,
    base_mode: 1 | 16 | (flight.armed ? 128 : 0),
    system_status: flight.armed ? 4 : 3,
    mavlink_version: 3,
  }),
  GLOBAL_POSITION_INT: (state) => ({
    time_boot_ms: state.boot_ms,
    lat: Math.round(state.flight.lat * 1e7),
    lon: Math.round(state.flight.lon * 1e7),
    alt: Math.round((state.flight.home.alt_amsl_m + state.flight.height_m) * 1_000),
    relative_alt:
      Math.round((state.flight.home.alt_amsl_m + state.flight.height_m) * 1_000) - homeAltitude_mm(state),
    vx: Math.round(state.flight.north_mps * 100),
    vy: Math.round(state.flight.east_mps * 100),
    vz: Math.round(-state.flight.up_mps * 100),
    hdg: Math.round(state.flight.heading_deg * 100),
  }),
  GPS_RAW_INT: ({ flight, boot_ms, gps }) => {
    const amsl_m = flight.home.alt_amsl_m + flight.height_m;
    const ok = gps === 'ok';
    return {
      ...blank('GPS_RAW_INT'),
      time_usec: boot_ms * 1_000,
      lat: ok ? Math.round(flight.lat * 1e7) : -350_020_068,
      lon: Math.round(flight.lon * 1e7),
      alt: Math.round(amsl_m * 1_000),
      eph: ok ? 80 : 65_535,
      epv: ok ? 120 : 65_535,
      vel: Math.round(Math.hypot(flight.north_mps, flight.east_mps) * 100),
      cog: 65_535,
      fix_type: ok ? 3 : 1,
      satellites_visible: ok ? 14 : 255,
      alt_ellipsoid: Math.round((amsl_m + undulation_m) * 1_000),
    };
  },
  ATTITUDE: ({ flight, boot_ms }) => ({
    ...blank('ATTITUDE'),
    time_boot_ms: boot_ms,
    roll: 0.02 + flight.roll_deg * radians_per_degree,
    pitch: -0.05,
    yaw: (flight.heading_deg > 180 ? flight.heading_deg - 360 : flight.heading_deg) * radians_per_degree,
  }),
  VFR_HUD: ({ flight, autopilot }) => {
    const speed = Math.hypot(flight.north_mps, flight.east_mps);
    return {
      airspeed: autopilot === 'px4' ? Number.NaN : speed,
      groundspeed: speed,
      alt: flight.home.alt_amsl_m + flight.height_m,
      climb: flight.up_mps,
      heading: Math.round(flight.heading_deg),
      throttle: flight.armed ? 42 : 0,
    };
  },
  SYS_STATUS: ({ autopilot, pre_arm_ok, gps, hasFence, kind, parameters }) => {
    const health = pre_arm_ok && (gps === 'ok' || kind === 'sub') ? pre_arm_bit : 0;
    const known = autopilot === 'px4' ? 0 : pre_arm_bit;
    const hasOne = autopilot === 'ardupilot' && hasFence;
    const fence = hasOne && parameters.get('FENCE_ENABLE')?.value === 1 ? geofence_bit : 0;
    return {
      ...blank('SYS_STATUS'),
      onboard_control_sensors_present: known | (hasOne ? geofence_bit : 0),
      onboard_control_sensors_enabled: known | fence,
      onboard_control_sensors_health: health | fence,
      load: 310,
      voltage_battery: 15_800,
      current_battery: 1_250,
      battery_remaining: 76,
    };
  },
  BATTERY_STATUS: () => ({
    ...blank('BATTERY_STATUS'),
    current_consumed: 1_200,
    energy_consumed: -1,
    temperature: 32_767,
    voltages: [3_950, 3_950, 3_950, 3_950, 65_535, 65_535, 65_535, 65_535, 65_535, 65_535],
    current_battery: 1_250,
    type: 1,
    battery_remaining: 76,
  }),
  EKF_STATUS_REPORT: ({ gps }) => ({
    ...blank('EKF_STATUS_REPORT'),
    velocity_variance: 0.1,
    pos_horiz_variance: 0.1,
    pos_vert_variance: 0.1,
    compass_variance: 0.1,
    flags: gps === 'ok' ? estimator_good.ardupilot : estimator_without_gps,
  }),
  ESTIMATOR_STATUS: ({ boot_ms, gps, flight }) => ({
    time_usec: boot_ms * 1_000,
    vel_ratio: 0.1,
    pos_horiz_ratio: 0.1,
    pos_vert_ratio: 0.1,
    mag_ratio: 0.1,
    hagl_ratio: Number.NaN,
    tas_ratio: Number.NaN,
    pos_horiz_accuracy: 0.5,
    pos_vert_accuracy: 0.5,
    flags:
      gps === 'lost' ? estimator_without_gps : estimator_good[flight.isAirborne ? 'px4_air' : 'px4_ground'],
  }),
  HOME_POSITION: (state) => ({
    ...blank('HOME_POSITION'),
    latitude: Math.round(state.flight.home.lat * 1e7),
    longitude: Math.round(state.flight.home.lon * 1e7),
    altitude: homeAltitude_mm(state),
    q: [1, 0, 0, 0],
  }),
  EXTENDED_SYS_STATE: (state) => ({
    vtol_state: vtolState(state),
    landed_state: landedState(state),
  }),
  POSITION_TARGET_GLOBAL_INT: ({ autopilot, flight, boot_ms }) => {
    const { lat, lon, height_m } = flight.shown_target ?? flight;
    return {
      ...blank('POSITION_TARGET_GLOBAL_INT'),
      time_boot_ms: boot_ms,
      lat_int: Math.round(lat * 1e7),
      lon_int: Math.round(lon * 1e7),
      alt: flight.home.alt_amsl_m + height_m,
      type_mask: 0xdf8,
      coordinate_frame: autopilot === 'px4' ? 5 : 0,
    };
  },
  NAV_CONTROLLER_OUTPUT: ({ flight }) => {
    const { lat, lon } = flight.target ?? flight;
    const north = lat - flight.lat;
    const east = (lon - flight.lon) * Math.cos(lat * radians_per_degree);
    return {
      ...blank('NAV_CONTROLLER_OUTPUT'),
      target_bearing: Math.round(Math.atan2(east, north) / radians_per_degree),
      wp_dist: Math.round(distance_m(flight, { lat, lon })),
    };
  },
  ORBIT_EXECUTION_STATUS: ({ flight, boot_ms }) => {
    const { circle } = flight;
    if (!circle || flight.mode !== 'ORBIT') return undefined;
    return {
      time_usec: boot_ms * 1_000,
      radius: circle.radius_m,
      x: Math.round(circle.lat * 1e7),
      y: Math.round(circle.lon * 1e7),
      z: flight.home.alt_amsl_m + circle.height_m,
      frame: 0,
    };
  },
  HIGH_LATENCY2: ({ autopilot, type, kind, flight, boot_ms, gps, pre_arm_ok, vtol_state }) => {
    const custom_mode = modeNumber({ autopilot, flight, gps, kind, type, vtol_state }, flight.mode);
    const failure_flags = (gps === 'ok' ? 0 : 1) | (pre_arm_ok ? 0 : failed_compass);
    return {
      ...blank('HIGH_LATENCY2'),
      timestamp: boot_ms,
      latitude: Math.round(flight.lat * 1e7),
      longitude: Math.round(flight.lon * 1e7),
      custom_mode: autopilot === 'px4' ? custom_mode >>> 16 : custom_mode,
      altitude: Math.round(flight.home.alt_amsl_m + flight.height_m),
      failure_flags,
      type,
      autopilot: autopilot === 'px4' ? 12 : 3,
      heading: Math.round(flight.heading_deg / 2),
      throttle: flight.armed ? 42 : 0,
      groundspeed: Math.round(Math.hypot(flight.north_mps, flight.east_mps) * 5),
      windspeed: 15,
      wind_heading: 120,
      eph: 8,
      epv: 12,
      temperature_air: -128,
      battery: 76,
      // The base mode of an ArduPilot.
      custom0: autopilot === 'px4' ? -128 : ((81 + (flight.armed ? 128 : 0)) << 24) >> 24,
      custom1: -128,
      custom2: -128,
    };
  },
  MISSION_CURRENT: ({ missions, flight }) => missions.report(flight.armed && flight.mode === 'AUTO'),
  WIND: () => ({ direction: 240, speed: 3, speed_z: 0 }),
  WIND_COV: ({ boot_ms }) => ({
    time_usec: boot_ms * 1_000,
    wind_x: 1.5,
    wind_y: 2.6,
    wind_z: 0,
    var_horiz: 0.1,
    var_vert: 0.1,
    wind_alt: Number.NaN,
    horiz_accuracy: 0.3,
    vert_accuracy: 0.3,
  }),
  RC_CHANNELS: ({ autopilot, boot_ms, throttle_us }) => ({
    ...rcChannels(boot_ms, throttle_us),
    rssi: throttle_us === undefined ? rssi_unknown : rssi_good[autopilot],
  }),
  // Flat ground at the height of home.
  TERRAIN_REPORT: ({ flight }) => ({
    lat: Math.round(flight.lat * 1e7),
    lon: Math.round(flight.lon * 1e7),
    spacing: 100,
    terrain_height: flight.home.alt_amsl_m,
    current_height: flight.height_m,
    pending: 0,
    loaded: 504,
  }),
  // A PX4 without a rangefinder.
  ALTITUDE: ({ flight, boot_ms }) => ({
    time_usec: boot_ms * 1_000,
    altitude_monotonic: flight.height_m,
    altitude_amsl: flight.home.alt_amsl_m + flight.height_m,
    altitude_local: flight.height_m,
    altitude_relative: flight.height_m,
    altitude_terrain: Number.NaN,
    bottom_clearance: Number.NaN,
  }),
  VIBRATION: ({ boot_ms, flight }) => ({
    time_usec: boot_ms * 1_000,
    vibration_x: flight.armed ? 4.5 : 0.1,
    vibration_y: flight.armed ? 4.2 : 0.1,
    vibration_z: flight.armed ? 8.1 : 0.1,
    clipping_0: 0,
    clipping_1: 0,
    clipping_2: 0,
  }),
  AUTOPILOT_VERSION: ({ uid, autopilot }) => autopilotVersion(uid, flight_software[autopilot]),
} as const satisfies Build;

const vtol_state_multicopter = 3;

/** An ArduCopter reports that it is a multicopter, as a hovering quadplane does. */
function vtolState({ autopilot, kind, vtol_state }: SimState): number {
  if (kind === 'vtol') return vtol_state;
  return autopilot === 'ardupilot' && kind === 'copter' ? vtol_state_multicopter : 0;
}

/** What tells the mode in which it holds. */
export type SimHold = Pick<SimState, 'autopilot' | 'flight' | 'gps' | 'kind' | 'type' | 'vtol_state'>;

/** Returns the numbers of the mode in which the vehicle holds, or undefined. */
export function simHoldNumbers({
  autopilot,
  flight,
  gps,
  kind,
  type,
  vtol_state,
}: SimHold): ModeNumbers | undefined {
  const isHovering = kind === 'vtol' && vtol_state === vtol_state_multicopter;
  const position = gps === 'ok' ? { lat: flight.lat, lon: flight.lon, alt_amsl_m: 0 } : undefined;
  const vtol_flight = isHovering ? 'hover' : null;
  return holdMode({
    autopilot,
    kind,
    is_boat: type === type_boat,
    vtol_flight,
    position,
    estimator: undefined,
  })?.numbers;
}

/** Modes of one kind of vehicle. */
const own_modes: Readonly<Partial<Record<SimMode, number>>> = {
  ORBIT: px4_orbit_mode,
  MOTORS_OFF: ardurover_hold_mode,
  DEPTH_HOLD: ardusub_depth_mode,
  SURFACE: ardusub_surface_mode,
};

function modeNumber(about: SimHold, mode: SimMode): number {
  const { autopilot, kind } = about;
  if (mode === 'TAKEOFF') return autopilot === 'px4' ? px4_takeoff_mode : arduplane_takeoff_mode;
  const own = own_modes[mode];
  if (own !== undefined) return own;
  if (mode === 'LAND' && autopilot === 'ardupilot' && kind === 'plane') return arduplane_landing_mode;
  const named = mode_names.find((name) => name === mode);
  const numbers = named ? modeNumbers(autopilot, kind, named) : simHoldNumbers(about);
  return numbers?.custom_mode ?? 0;
}

/** Rovers, boats and submarines: PX4 reports an armed one as airborne, and ArduPilot reports no landed state. */
function landedState({ autopilot, flight, kind }: SimState): number {
  if (assetTypeOf(kind) === 'drone') return flight.isAirborne || flight.believes_airborne ? 2 : 1;
  if (autopilot === 'ardupilot') return 0;
  return flight.armed ? 2 : 1;
}

function homeAltitude_mm({ autopilot, flight, kind }: SimState): number {
  const is_nonsense = autopilot === 'ardupilot' && kind === 'rover';
  return is_nonsense ? rover_home_alt_mm : Math.round(flight.home.alt_amsl_m * 1_000);
}

export type Telemetry = keyof typeof telemetry;

/** Ids by which messages are requested. */
export const telemetry_ids: ReadonlyMap<number, Telemetry> = new Map([
  [1, 'SYS_STATUS'],
  [24, 'GPS_RAW_INT'],
  [30, 'ATTITUDE'],
  [33, 'GLOBAL_POSITION_INT'],
  [42, 'MISSION_CURRENT'],
  [65, 'RC_CHANNELS'],
  [62, 'NAV_CONTROLLER_OUTPUT'],
  [74, 'VFR_HUD'],
  [87, 'POSITION_TARGET_GLOBAL_INT'],
  [136, 'TERRAIN_REPORT'],
  [141, 'ALTITUDE'],
  [147, 'BATTERY_STATUS'],
  [148, 'AUTOPILOT_VERSION'],
  [168, 'WIND'],
  [193, 'EKF_STATUS_REPORT'],
  [230, 'ESTIMATOR_STATUS'],
  [231, 'WIND_COV'],
  [241, 'VIBRATION'],
  [242, 'HOME_POSITION'],
  [245, 'EXTENDED_SYS_STATE'],
  [360, 'ORBIT_EXECUTION_STATUS'],
]);

const stick_middle_us = 1_500;
const rssi_unknown = 255;
/** The same strength: PX4 sends percent, ArduPilot a scale to 254. */
const rssi_good = { ardupilot: 203, px4: 80 } as const;

/**
 * The pilot's transmitter: ArduPilot has no channels of a receiver that it has never seen. `throttle_us`: pulse of the throttle
 * stick; undefined: there is no transmitter.
 */
function rcChannels(boot_ms: number, throttle_us: number | undefined): Omit<Messages['RC_CHANNELS'], 'rssi'> {
  const pulse_us = throttle_us === undefined ? 0 : stick_middle_us;
  return {
    ...blank('RC_CHANNELS'),
    time_boot_ms: boot_ms,
    chan1_raw: pulse_us,
    chan2_raw: pulse_us,
    chan3_raw: throttle_us ?? 0,
    chan4_raw: pulse_us,
    chan5_raw: pulse_us,
    chan6_raw: pulse_us,
    chan7_raw: pulse_us,
    chan8_raw: pulse_us,
    chancount: throttle_us === undefined ? 0 : 8,
  };
}

// AUTOPILOT_VERSION of a simulated vehicle: its identity; other fields do not affect the driver.

type Version = Messages['AUTOPILOT_VERSION'];

const ardupilot_4_6 = 0x04_06_00_ff;
/** What ArduPilot 4.6 on a quadrotor reports. */
const usual_capabilities = 0xe0ff;

/** `uid`: 16 hexadecimal digits. */
export function autopilotVersion(uid: string, flight_sw_version = ardupilot_4_6): Version {
  return { ...blank('AUTOPILOT_VERSION'), capabilities: usual_capabilities, uid, flight_sw_version };
}
