/** Converts messages of the vehicle to messages of its feeds. Every sentinel becomes null, nothing is invented. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import { distance_m } from './geo.ts';
import type { Kind } from '../reports/kind.ts';
import type { Messages } from '../wire/messages.ts';

type Feed<K extends keyof typeof droneFeeds> = z.output<(typeof droneFeeds)[K]>;
type Battery = Pick<Feed<'battery'>, 'voltage' | 'current' | 'remaining_pct'>;

const unknown_u8 = 255;
const unknown_u16 = 65_535;
const fix_2d = 2;
const fix_3d = 3;
const degrees_per_radian = 180 / Math.PI;
/** A relative altitude that differs from HOME_POSITION by more than this has another datum. */
const home_disagreement_max_m = 10;

/** Altitudes of a rover may differ by this much at one place, and by this much for each metre of distance. */
const altitude_error_m = 30;
const slope_max = 0.5;

/** Other messages that the position message is combined with. */
export interface PositionContext {
  readonly gps: Messages['GPS_RAW_INT'] | undefined;
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
  };
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

/** Whether a rover can have come from this home to its height: ArduPilot reports a home near sea level for rovers. */
function isReachable(
  { lat, lon, alt }: Messages['GLOBAL_POSITION_INT'],
  { latitude, longitude, altitude }: Messages['HOME_POSITION'],
): boolean {
  const away_m = distance_m(
    { lat: lat / 1e7, lon: lon / 1e7 },
    { lat: latitude / 1e7, lon: longitude / 1e7 },
  );
  return Math.abs(alt - altitude) / 1_000 <= altitude_error_m + slope_max * away_m;
}

/** Returns the height of mean sea level above the ellipsoid in metres; undefined if the receiver does not report it. */
export function undulation(gps: Messages['GPS_RAW_INT']): number | undefined {
  if (gps.fix_type < fix_3d || gps.alt_ellipsoid === 0) return undefined;
  return (gps.alt_ellipsoid - gps.alt) / 1_000;
}

/** `GPS_RAW_INT`. A receiver without a fix still sends values, which are ignored. */
export function gpsRawFeed(gps: Messages['GPS_RAW_INT']): Feed<'gps_raw'> {
  const { fix_type, lat, lon, alt, eph, epv, satellites_visible } = gps;
  const has_place = fix_type >= fix_2d && isPlace(lat, lon);
  const has_altitude = has_place && fix_type >= fix_3d;
  return {
    lat: has_place ? lat / 1e7 : null,
    lon: has_place ? lon / 1e7 : null,
    alt_m: has_altitude && gps.alt_ellipsoid !== 0 ? gps.alt_ellipsoid / 1_000 : null,
    fix_type: fix_type <= 8 ? fix_type : null,
    satellites_visible: satellites_visible === unknown_u8 ? null : satellites_visible,
    alt_amsl_m: has_altitude ? alt / 1_000 : null,
    hdop: eph === unknown_u16 ? null : eph / 100,
    vdop: epv === unknown_u16 ? null : epv / 100,
  };
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

/** `BATTERY_STATUS`; undefined without any reading. */
export function batteryReading(status: Messages['BATTERY_STATUS']): Battery | undefined {
  const cells = status.voltages.filter((cell) => cell !== unknown_u16);
  const more = status.voltages_ext.filter((cell) => cell !== 0 && cell !== unknown_u16);
  const total_mv = [...cells, ...more].reduce((sum, cell) => sum + cell, 0);
  return reading(total_mv === 0 ? null : total_mv, status);
}

/** The battery of `SYS_STATUS`; undefined without a monitor. */
export function systemBattery(status: Messages['SYS_STATUS']): Battery | undefined {
  const { voltage_battery } = status;
  const is_blind = status.current_battery === -1 && status.battery_remaining === -1;
  const isKnown = voltage_battery !== unknown_u16 && !(voltage_battery === 0 && is_blind);
  return reading(isKnown ? voltage_battery : null, status);
}

function reading(
  millivolts: number | null,
  {
    current_battery,
    battery_remaining,
  }: { readonly current_battery: number; readonly battery_remaining: number },
): Battery | undefined {
  const voltage = millivolts === null ? null : millivolts / 1_000;
  const current = current_battery === -1 ? null : current_battery / 100;
  const remaining_pct = battery_remaining < 0 ? null : Math.min(100, battery_remaining);
  const is_empty = voltage === null && current === null && remaining_pct === null;
  return is_empty ? undefined : { voltage, current, remaining_pct };
}

/** The battery with the lowest id is the main one; the others are listed beside it. */
export function batteryFeed(by_id: ReadonlyMap<number, Battery>): Feed<'battery'> | undefined {
  const all = [...by_id]
    .toSorted(([a], [b]) => a - b)
    .map(([id, { voltage, current, remaining_pct }]) => ({ id, voltage, current, remaining_pct }));
  const [main] = all;
  if (!main) return undefined;
  const { id: _, ...feed } = main;
  return all.length > 1 ? { ...feed, batteries: all } : feed;
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
  gps: Messages['GPS_RAW_INT'] | undefined,
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

/** `WIND` of ArduPilot. Undefined without an estimate, for which it sends zeros. */
export function windFeed({ speed, direction }: Messages['WIND']): Feed<'wind'> | undefined {
  if (!Number.isFinite(speed) || !Number.isFinite(direction) || (speed === 0 && direction === 0))
    return undefined;
  return { speed_mps: rounded(Math.abs(speed), 2), direction: rounded(compass(direction), 1) };
}

/** `WIND_COV` of PX4: a vector in the direction in which the air moves. */
export function windVectorFeed({ wind_x, wind_y }: Messages['WIND_COV']): Feed<'wind'> | undefined {
  if (!Number.isFinite(wind_x) || !Number.isFinite(wind_y)) return undefined;
  const direction = (Math.atan2(-wind_y, -wind_x) * 180) / Math.PI;
  return {
    speed_mps: rounded(Math.hypot(wind_x, wind_y), 2),
    direction: rounded(compass(direction), 1),
  };
}

/** `VIBRATION`. */
export function vibrationFeed(report: Messages['VIBRATION']): Feed<'vibration'> {
  const { vibration_x, vibration_y, vibration_z, clipping_0, clipping_1, clipping_2 } = report;
  return {
    x: measured(vibration_x),
    y: measured(vibration_y),
    z: measured(vibration_z),
    clipping: [clipping_0, clipping_1, clipping_2],
  };
}

/** `FENCE_STATUS`. */
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
