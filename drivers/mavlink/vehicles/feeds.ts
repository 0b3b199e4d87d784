/** Converts messages of the vehicle to messages of its feeds. Every sentinel becomes null, nothing is invented. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import { distance_m } from './geo.ts';
import type { Autopilot, Kind } from '../reports/kind.ts';
import type { Messages } from '../wire/messages.ts';

type Feed<K extends keyof typeof droneFeeds> = z.output<(typeof droneFeeds)[K]>;
type Battery = Pick<
  Feed<'battery'>,
  | 'voltage'
  | 'current'
  | 'remaining_pct'
  | 'function'
  | 'charge_state'
  | 'faults'
  | 'consumed_mah'
  | 'time_remaining_s'
  | 'temperature_c'
>;
/** What both receivers report. */
type Receiver = Omit<Messages['GPS2_RAW'], 'dgps_age' | 'dgps_numch'>;

const unknown_u8 = 255;
const unknown_u16 = 65_535;
const unknown_u32 = 0xffff_ffff;
/** Of twelve cells, ten make at least this much less than all. */
const cells_missing_factor = 1.05;
const unknown_i16 = 32_767;
/** Receivers without satellites report a dilution of 99.99 (u-blox). */
const dilution_unknown = 9_999;
const fix_2d = 2;
const fix_3d = 3;
/** The rounding of a height that is sent twice. */
const same_height_mm = 10;
const degrees_per_radian = 180 / Math.PI;
/** A relative altitude that differs from HOME_POSITION by more than this has another datum. */
const home_disagreement_max_m = 10;

/** Altitudes of a rover may differ by this much at one place, and by this much for each metre of distance. */
const altitude_error_m = 30;
const slope_max = 0.5;

/** Other messages that the position message is combined with. */
export interface PositionContext {
  readonly gps: Receiver | undefined;
  readonly home: Messages['HOME_POSITION'] | undefined;
  readonly kind: Kind;
  /** False until the autopilot has determined its heading. */
  readonly isAligned: boolean;
}

/** `GLOBAL_POSITION_INT`. Undefined without a position. `isPositionValid` decides whether the position is valid. */
export function gpsFeed(
  position: Messages['GLOBAL_POSITION_INT'],
  { gps, home, kind, isAligned }: PositionContext,
): Feed<'gps'> | undefined {
  const { lat, lon, alt, hdg, vx, vy } = position;
  if (!isPlace(lat, lon)) return undefined;
  const alt_amsl_m = alt / 1_000;
  const undulation_m = gps && undulation(gps);
  return {
    lat: lat / 1e7,
    lon: lon / 1e7,
    alt_m: undulation_m === undefined ? null : rounded(alt_amsl_m + undulation_m, 3),
    ground_speed: rounded(Math.hypot(vx, vy) / 100, 2),
    heading: hdg === unknown_u16 || hdg > 36_000 || !isAligned ? null : hdg / 100,
    alt_amsl_m,
    relative_alt_m: relativeAltitude(position, home, kind),
    ...(home &&
      isPlace(home.latitude, home.longitude) && { home_distance_m: rounded(awayFrom_m(home, position), 1) }),
  };
}

/** Also without a position: its height comes from its pressure sensor. Without one it reports 0 (ArduSub). */
export function depthFeed({ alt, relative_alt }: Messages['GLOBAL_POSITION_INT']): Feed<'depth'> | undefined {
  if (alt === 0 && relative_alt === 0) return undefined;
  return { depth_m: rounded(-relative_alt / 1_000, 2) };
}

/** Returns metres above home; null while home is unknown: autopilots then use another datum for the field. */
function relativeAltitude(
  position: Messages['GLOBAL_POSITION_INT'],
  home: Messages['HOME_POSITION'] | undefined,
  kind: Kind,
): number | null {
  if (!home || (kind === 'rover' && !isReachable(position, home))) return null;
  const above_home_m = (position.alt - home.altitude) / 1_000;
  const reported_m = position.relative_alt / 1_000;
  return Math.abs(reported_m - above_home_m) <= home_disagreement_max_m
    ? reported_m
    : rounded(above_home_m, 3);
}

function awayFrom_m(
  { latitude, longitude }: Messages['HOME_POSITION'],
  { lat, lon }: Messages['GLOBAL_POSITION_INT'],
): number {
  return distance_m({ lat: lat / 1e7, lon: lon / 1e7 }, { lat: latitude / 1e7, lon: longitude / 1e7 });
}

/** Whether a rover can have come from this home to its height: ArduPilot reports a home near sea level for rovers. */
function isReachable(position: Messages['GLOBAL_POSITION_INT'], home: Messages['HOME_POSITION']): boolean {
  const away_m = awayFrom_m(home, position);
  return Math.abs(position.alt - home.altitude) / 1_000 <= altitude_error_m + slope_max * away_m;
}

/** Returns the receiver that counts: the second one only where the first one lacks what it has. */
export function bestReceiver(one: Receiver | undefined, two: Receiver | undefined): Receiver | undefined {
  if (!one || !two) return one ?? two;
  return one.fix_type < Math.min(two.fix_type, fix_3d) ? two : one;
}

/** Returns the height of mean sea level above the ellipsoid in metres; undefined if the receiver does not report it. */
export function undulation(gps: Receiver): number | undefined {
  return gps.fix_type >= fix_3d && hasEllipsoid(gps) ? (gps.alt_ellipsoid - gps.alt) / 1_000 : undefined;
}

/** DroneCAN receivers of ArduPilot (until ArduPilot#29905) and Betaflight send the height above the sea in its place. */
function hasEllipsoid({ alt, alt_ellipsoid }: Receiver): boolean {
  return alt_ellipsoid !== 0 && Math.abs(alt_ellipsoid - alt) > same_height_mm;
}

/** `GPS_RAW_INT` or `GPS2_RAW`. A receiver without a fix still sends values, which are ignored. `two`: of a vehicle that has two. */
export function gpsRawFeed(one: Receiver, two?: Receiver): Feed<'gps_raw'> {
  const best = bestReceiver(one, two) ?? one;
  const both = two && {
    receiver: best === two ? 2 : 1,
    receivers: [one, two].map((each, index) => {
      const { fix_type, satellites_visible } = receiverFeed(each);
      return { receiver: index + 1, fix_type, satellites_visible };
    }),
  };
  return { ...receiverFeed(best), ...both };
}

function receiverFeed(gps: Receiver): Feed<'gps_raw'> {
  const { fix_type, lat, lon, alt, eph, epv, satellites_visible } = gps;
  const has_place = fix_type >= fix_2d && isPlace(lat, lon);
  const has_altitude = has_place && fix_type >= fix_3d;
  return {
    lat: has_place ? lat / 1e7 : null,
    lon: has_place ? lon / 1e7 : null,
    alt_m: has_altitude && hasEllipsoid(gps) ? gps.alt_ellipsoid / 1_000 : null,
    fix_type: fix_type <= 8 ? fix_type : null,
    satellites_visible: satellites_visible === unknown_u8 ? null : satellites_visible,
    alt_amsl_m: has_altitude ? alt / 1_000 : null,
    hdop: dilution(eph),
    vdop: dilution(epv),
    ...(has_place && accuracyOf('h_acc_m', gps.h_acc)),
    ...(has_altitude && accuracyOf('v_acc_m', gps.v_acc)),
  };
}

function dilution(hundredths: number): number | null {
  return hundredths >= dilution_unknown ? null : hundredths / 100;
}

function accuracyOf(name: 'h_acc_m' | 'v_acc_m', millimetres: number): object | false {
  return millimetres !== 0 && millimetres !== unknown_u32 && { [name]: millimetres / 1_000 };
}

/** MAV_BATTERY_CHARGE_STATE, by number. */
export const charge_states = [
  null,
  'ok',
  'low',
  'critical',
  'emergency',
  'failed',
  'unhealthy',
  'charging',
] as const;

/** MAV_BATTERY_FUNCTION, by number. */
const battery_functions = [undefined, 'all', 'propulsion', 'avionics', 'payload'] as const;
/** What keeps the vehicle in the air comes first, then what does not say what it is for. */
const functions_by_weight: readonly Battery['function'][] = [
  'propulsion',
  'all',
  undefined,
  'avionics',
  'payload',
];
const states_by_weight: readonly Battery['charge_state'][] = [
  'emergency',
  'critical',
  'failed',
  'unhealthy',
  'low',
];

/** MAV_BATTERY_FAULT, by bit. */
const battery_faults =
  'deep_discharge voltage_spikes cell_fail over_current over_temperature under_temperature incompatible_voltage incompatible_firmware incompatible_cells'.split(
    ' ',
  );

/** `BATTERY_STATUS`; undefined without any reading. */
export function batteryReading(status: Messages['BATTERY_STATUS']): Battery | undefined {
  const { current_consumed, time_remaining, temperature } = status;
  const cells = status.voltages.filter((cell) => cell !== unknown_u16);
  const more = status.voltages_ext.filter((cell) => cell !== 0 && cell !== unknown_u16);
  const total_mv = [...cells, ...more].reduce((sum, cell) => sum + cell, 0);
  const its = judgementOf(status);
  const measured = reading(total_mv === 0 ? null : total_mv, status);
  if (!measured && !its.charge_state && !its.faults) return undefined;
  return {
    ...(measured ?? { voltage: null, current: null, remaining_pct: null }),
    ...its,
    ...(current_consumed >= 0 && { consumed_mah: current_consumed }),
    ...(time_remaining > 0 && { time_remaining_s: time_remaining }),
    ...(temperature !== unknown_i16 && { temperature_c: temperature / 100 }),
  };
}

/** What it is for, and how it is. */
function judgementOf({
  battery_function,
  charge_state,
  fault_bitmask,
}: Messages['BATTERY_STATUS']): Pick<Battery, 'charge_state' | 'faults' | 'function'> {
  const its = battery_functions[battery_function];
  const state = charge_states[charge_state];
  const faults = battery_faults.filter((_, bit) => ((fault_bitmask >>> bit) & 1) === 1);
  return {
    ...(its && { function: its }),
    ...(state && { charge_state: state }),
    ...(faults.length > 0 && { faults }),
  };
}

/** The battery of `SYS_STATUS`; undefined without a monitor: iNav and Betaflight report 0 V and 100 % then (mavlinkSendSystemStatus). */
export function systemBattery(status: Messages['SYS_STATUS']): Battery | undefined {
  const { voltage_battery, current_battery, battery_remaining } = status;
  const isMadeUp = voltage_battery === 0 && battery_remaining === 100;
  return reading(voltage_battery === unknown_u16 || voltage_battery === 0 ? null : voltage_battery, {
    current_battery,
    battery_remaining: isMadeUp ? -1 : battery_remaining,
  });
}

/** No battery is without a voltage and a current and empty: so iNav shows that none is connected (iNav#11913). */
function reading(
  millivolts: number | null,
  {
    current_battery,
    battery_remaining,
  }: { readonly current_battery: number; readonly battery_remaining: number },
): Battery | undefined {
  const voltage = millivolts === null ? null : millivolts / 1_000;
  const current = current_battery === -1 ? null : current_battery / 100;
  const isBlind = voltage === null && (current === null || current === 0) && battery_remaining <= 0;
  const remaining_pct = battery_remaining < 0 ? null : Math.min(100, battery_remaining);
  return isBlind ? undefined : { voltage, current, remaining_pct };
}

/**
 * The main battery, and all of several beside it. Where there is one, `system` fills what it lacks, such as the voltage of a battery on CAN
 * (QGroundControl#9079) or of one with more cells than the message has places (PX4-Autopilot#18535).
 */
export function batteryFeed(
  by_id: ReadonlyMap<number, Battery>,
  system?: Battery,
): Feed<'battery'> | undefined {
  const all = [...by_id].map(([id, battery]) => Object.assign({ id }, battery));
  const [main] = all.toSorted((a, b) => weightOf(a) - weightOf(b) || a.id - b.id);
  if (!main) return system;
  const { id: _, ...feed } = main;
  if (all.length > 1) return { ...feed, batteries: all.toSorted((a, b) => a.id - b.id) };
  const { voltage: whole = null, current = null, remaining_pct = null } = system ?? {};
  const isPart = feed.voltage === null || (whole ?? 0) > feed.voltage * cells_missing_factor;
  const voltage = isPart ? whole : feed.voltage;
  return {
    ...feed,
    voltage,
    current: feed.current ?? current,
    remaining_pct: feed.remaining_pct ?? remaining_pct,
  };
}

function weightOf({ function: its, charge_state }: Battery): number {
  const state_at = states_by_weight.indexOf(charge_state);
  const count = states_by_weight.length;
  return functions_by_weight.indexOf(its) * (count + 1) + (state_at === -1 ? count : state_at);
}

/** `ATTITUDE`: radians to degrees. */
export function attitudeFeed({ roll, pitch, yaw }: Messages['ATTITUDE']): Feed<'attitude'> {
  return { roll: degrees(roll), pitch: degrees(pitch), yaw: degrees(yaw) };
}

/** `RADIO_STATUS` and `RADIO`: the sender is the radio on the kit's side. */
export function radioFeed(radio: Messages['RADIO_STATUS']): Feed<'radio'> {
  const { rssi, remrssi, noise, remnoise, rxerrors } = radio;
  return {
    rssi: known8(rssi),
    remote_rssi: known8(remrssi),
    noise: known8(noise),
    rx_errors: rxerrors,
    remote_noise: known8(remnoise),
  };
}

/** `VFR_HUD`. Its altitude is left out: its datum depends on the age of the firmware. */
export function vfrHudFeed(hud: Messages['VFR_HUD']): Feed<'vfr_hud'> {
  const { airspeed, groundspeed, throttle, climb, heading } = hud;
  const speed = finite(groundspeed, 2);
  return {
    airspeed: finite(airspeed, 2),
    groundspeed: speed === null || speed < 0 ? null : speed,
    throttle_pct: throttle <= 100 ? throttle : null,
    climb_mps: finite(climb, 2),
    heading: heading < 0 || heading > 360 ? null : heading % 360,
  };
}

/** `RC_CHANNELS` or `RC_CHANNELS_RAW`. PX4 sends percent, others a scale to 254; of ArduPilot 0 is no report (AP_RSSI.cpp). */
export function rcFeed(
  { rssi, chancount = null }: { readonly rssi: number; readonly chancount?: number | null },
  autopilot: Autopilot,
): Feed<'rc'> {
  const full = autopilot === 'px4' ? 100 : unknown_u8 - 1;
  const isKnown = rssi !== unknown_u8 && chancount !== 0 && (rssi !== 0 || autopilot !== 'ardupilot');
  return { rssi_pct: isKnown ? Math.min(100, rounded((rssi / full) * 100, 0)) : null, channels: chancount };
}

/** `TERRAIN_REPORT` of ArduPilot. Undefined where it has no data of the ground. */
export function terrainFeed({
  spacing,
  terrain_height,
  current_height,
}: Messages['TERRAIN_REPORT']): Feed<'terrain'> | undefined {
  return spacing === 0 ? undefined : terrainOf(current_height, terrain_height);
}

/** `ALTITUDE` of PX4, which measures the distance to the ground. Negative: it is not known. */
export function clearanceFeed({
  altitude_amsl,
  bottom_clearance,
}: Messages['ALTITUDE']): Feed<'terrain'> | undefined {
  return bottom_clearance < 0 ? undefined : terrainOf(bottom_clearance, altitude_amsl - bottom_clearance);
}

function terrainOf(above_m: number, alt_amsl_m: number): Feed<'terrain'> | undefined {
  if (!Number.isFinite(above_m) || !Number.isFinite(alt_amsl_m)) return undefined;
  return { above_terrain_m: rounded(above_m, 2), terrain_alt_amsl_m: rounded(alt_amsl_m, 2) };
}

/** Whether it is a position: autopilots send 0, 0 while they have none. */
export function isPlace(lat: number, lon: number): boolean {
  return (lat !== 0 || lon !== 0) && Math.abs(lat) <= 90e7 && Math.abs(lon) <= 180e7;
}

function known8(value: number): number | null {
  return value === unknown_u8 ? null : value;
}

/** -180 to 180, or null. */
function degrees(radians: number): number | null {
  if (!Number.isFinite(radians)) return null;
  const turned = radians * degrees_per_radian;
  return rounded(Math.abs(turned) <= 180 ? turned : (((turned % 360) + 540) % 360) - 180, 2);
}

function finite(value: number, digits: number): number | null {
  return Number.isFinite(value) ? rounded(value, digits) : null;
}

function rounded(value: number, digits: number): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}

/** MAV_SYS_STATUS_SENSOR, by bit; empty: another field has it. The names of those of a satellite report are the same. */
const sensors =
  'gyroscope accelerometer compass absolute_pressure differential_pressure gps optical_flow vision_position laser_position external_ground_truth angular_rate_control attitude_stabilization yaw_position altitude_control position_control motor_outputs rc_receiver gyroscope_2 accelerometer_2 compass_2 geofence ahrs terrain reverse_motor logging battery proximity satcom . obstacle_avoidance propulsion .'.split(
    ' ',
  );

/** Returns the sensors and controllers of `SYS_STATUS` that are there, are used, and do not work. */
export function failedSensors(status: Messages['SYS_STATUS']): readonly string[] {
  const failed =
    status.onboard_control_sensors_present &
    status.onboard_control_sensors_enabled &
    ~status.onboard_control_sensors_health;
  return sensors.filter((sensor, bit) => sensor !== '.' && ((failed >>> bit) & 1) === 1);
}

// Converts messages to the feeds `home`, `wind`, `vibration` and `fence`. Unknown values become null.

const breach_types = ['none', 'min_altitude', 'max_altitude', 'boundary'] as const;

/** `HOME_POSITION`. Undefined while home is not set. */
export function homeFeed(
  { latitude, longitude, altitude }: Messages['HOME_POSITION'],
  gps: Receiver | undefined,
): Feed<'home'> | undefined {
  if (!isPlace(latitude, longitude)) return undefined;
  const alt_amsl_m = altitude / 1_000;
  const undulation_m = gps && undulation(gps);
  return {
    lat: latitude / 1e7,
    lon: longitude / 1e7,
    alt_m: undulation_m === undefined ? null : rounded(alt_amsl_m + undulation_m, 3),
    alt_amsl_m,
  };
}

/** `WIND` of ArduPilot. Undefined without an estimate, for which it sends speed 0, from 0, -180 or 180 degrees. */
export function windFeed({ speed, direction }: Messages['WIND']): Feed<'wind'> | undefined {
  if (!Number.isFinite(speed) || !Number.isFinite(direction) || speed === 0) return undefined;
  return { speed_mps: rounded(Math.abs(speed), 2), direction: rounded(compass(direction), 1) };
}

/** `WIND_COV` of PX4: a vector in the direction in which the air moves. */
export function windVectorFeed({ wind_x, wind_y }: Messages['WIND_COV']): Feed<'wind'> | undefined {
  if (!Number.isFinite(wind_x) || !Number.isFinite(wind_y) || (wind_x === 0 && wind_y === 0))
    return undefined;
  const direction = (Math.atan2(-wind_y, -wind_x) * 180) / Math.PI;
  return {
    speed_mps: rounded(Math.hypot(wind_x, wind_y), 2),
    direction: rounded(compass(direction), 1),
  };
}

export function vibrationFeed(report: Messages['VIBRATION']): Feed<'vibration'> {
  const { vibration_x, vibration_y, vibration_z, clipping_0, clipping_1, clipping_2 } = report;
  return {
    x: measured(vibration_x),
    y: measured(vibration_y),
    z: measured(vibration_z),
    clipping: [clipping_0, clipping_1, clipping_2],
  };
}

export function fenceFeed(status: Messages['FENCE_STATUS']): Feed<'fence'> {
  const { breach_status, breach_count, breach_type } = status;
  return {
    breached: breach_status !== 0,
    breach_count,
    breach_type: breach_types[breach_type] ?? null,
  };
}

/** Degrees from 0 to below 360. */
function compass(degrees: number): number {
  return ((degrees % 360) + 360) % 360;
}

function measured(value: number): number | null {
  return Number.isFinite(value) ? rounded(value, 3) : null;
}
