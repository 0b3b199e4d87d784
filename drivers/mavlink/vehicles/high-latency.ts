/** What HIGH_LATENCY2 reports: the one message of a vehicle over a satellite. Coarse, and minutes apart. Pure. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { Messages } from '../wire/messages.ts';
import type { Autopilot } from '../reports/kind.ts';

type Feed<K extends keyof typeof droneFeeds> = z.output<(typeof droneFeeds)[K]>;
type Report = Messages['HIGH_LATENCY2'];

/** HL_FAILURE_FLAG, by bit. */
const failures =
  'gps differential_pressure absolute_pressure accelerometer gyroscope compass terrain battery rc_receiver offboard_link engine geofence estimator mission'.split(
    ' ',
  );
const flag_gps = 0x1;
const flag_estimator = 0x1000;
const armed_bit = 128;
const mode_known = 1;
const mavlink_version = 3;
/** PX4 sends the upper half of the number. */
const px4_mode_bits = 16;
const unknown_u8 = 255;

/** Returns the names of the parts that have failed. */
export function failuresOf({ failure_flags }: Pick<Report, 'failure_flags'>): readonly string[] {
  return failures.filter((_, bit) => (failure_flags & (1 << bit)) !== 0);
}

/** Whether it is armed; null: not reported. ArduPilot puts its base mode into a free field. */
export function highLatencyArmed({ custom0 }: Report, autopilot: Autopilot): boolean | null {
  return autopilot === 'ardupilot' ? (custom0 & armed_bit) !== 0 : null;
}

/** Returns the heartbeat that stands for it: mode and kind. */
export function heartbeatOf(report: Report, autopilot: Autopilot): Messages['HEARTBEAT'] {
  const { type, autopilot: reported, custom_mode } = report;
  const armed = highLatencyArmed(report, autopilot) === true ? armed_bit : 0;
  return {
    type,
    autopilot: reported,
    custom_mode: autopilot === 'px4' ? (custom_mode << px4_mode_bits) >>> 0 : custom_mode,
    base_mode: mode_known | armed,
    system_status: 0,
    mavlink_version,
  };
}

/** Returns undefined without a valid position. */
export function highLatencyPosition(report: Report): Feed<'gps'> | undefined {
  const { latitude, longitude, altitude, groundspeed, heading, failure_flags } = report;
  if ((latitude === 0 && longitude === 0) || (failure_flags & flag_gps) !== 0) return undefined;
  return {
    lat: latitude / 1e7,
    lon: longitude / 1e7,
    alt_m: null,
    ground_speed: groundspeed === unknown_u8 ? null : groundspeed / 5,
    heading: degrees(heading),
    alt_amsl_m: altitude,
    relative_alt_m: null,
  };
}

/** Returns undefined without a monitor. */
export function highLatencyBattery({ battery }: Report): Feed<'battery'> | undefined {
  return battery < 0 ? undefined : { voltage: null, current: null, remaining_pct: Math.min(100, battery) };
}

/** The climb rate of PX4 has no sign. */
export function highLatencySpeeds(report: Report, autopilot: Autopilot): Feed<'vfr_hud'> {
  const { airspeed, groundspeed, throttle, climb_rate, heading } = report;
  return {
    airspeed: airspeed === unknown_u8 ? null : airspeed / 5,
    groundspeed: groundspeed === unknown_u8 ? null : groundspeed / 5,
    throttle_pct: throttle <= 100 ? throttle : null,
    climb_mps: autopilot === 'ardupilot' ? climb_rate / 10 : null,
    heading: degrees(heading),
  };
}

/** Whether the estimator works; null: a vehicle that has no estimator flag does not report that it works. */
export function highLatencyEstimator({ failure_flags }: Report): false | null {
  return (failure_flags & flag_estimator) === 0 ? null : false;
}

function degrees(half: number): number | null {
  return half > 180 ? null : (half * 2) % 360;
}
