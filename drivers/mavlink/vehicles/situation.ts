/** The current state of a vehicle, for its status feed and for the preconditions of commands. */
import { type Contact, isArmed } from './contact.ts';
import { bestReceiver, undulation } from './feeds.ts';
import type { Place } from './geo.ts';
import { highLatencyArmed } from './high-latency.ts';
import { type Autopilot, assetTypeOf, type Kind } from '../reports/kind.ts';
import type { Messages } from '../wire/messages.ts';
import type { VehicleEvent } from '../reports/px4-events.ts';
import { flightMode } from './modes.ts';

export interface Situation {
  readonly autopilot: Autopilot;
  readonly kind: Kind;
  /** It floats: without its motors it drifts. */
  readonly is_boat: boolean;
  /** It is received by HIGH_LATENCY2 alone: what it reports is coarse and minutes old. */
  readonly is_high_latency: boolean;
  /** Null: no recent heartbeat. */
  readonly armed: boolean | null;
  readonly mode: string | null;
  /** Names of the flight modes by number, from the autopilot's list. */
  readonly modes: ReadonlyMap<number, string>;
  /** Null: unknown. */
  readonly airborne: boolean | null;
  /** It lies on its side or its back, so that it does not fly, whatever it reports. */
  readonly isOverturned: boolean;
  /** How a VTOL flies; null: it does not report it, or the vehicle is none. */
  readonly vtol_flight: 'forward' | 'hover' | null;
  /** Undefined: no valid, recent position. */
  readonly position: (Place & { readonly alt_amsl_m: number }) | undefined;
  readonly home: (Place & { readonly alt_amsl_m: number }) | undefined;
  readonly undulation_m: number | undefined;
  /** Of several inclusion areas of its fence it must be inside this one: PX4 before 1.15 is content with any (PX4-Autopilot#22394). */
  readonly fence_rule: 'any' | 'each';
  readonly estimator: EstimatorHealth | undefined;
  readonly pre_arm_check: boolean | null;
  readonly pre_arm_reasons: readonly string[];
}

/** Autopilots send a heartbeat every second. */
const heartbeat_fresh_ms = 3_500;
export const position_fresh_ms = 3_000;
const status_fresh_ms = 5_000;
const fence_fresh_ms = 15_000;
/** Home is reported every five seconds, and when it changes. */
const home_fresh_ms = 30_000;
/** ArduPilot repeats its reasons every 30 s. */
const reasons_fresh_ms = 65_000;
const reasons_max = 5;
/** MAV_TYPE. */
const type_boat = 11;
const type_helicopter = 4;
const pre_arm_bit = 0x1000_0000;
/** MAV_SYS_STATUS_GEOFENCE. */
export const geofence_bit = 0x10_0000;
const fix_2d = 2;
const px4_1_15 = 0x01_0f_00_00;
const landed_on_ground = 1;
const landed_unknown = 0;
/** A vehicle that does not report its landed state counts as airborne above this height over home. */
const flying_height_m = 1;
const reason_pattern = /^(?:PreArm|Arm|Preflight Fail|Arming denied)[:! ]/u;

/** Whether a text says why the vehicle cannot be armed. */
export function isArmingReason(text: string): boolean {
  return reason_pattern.test(text);
}

export function situationOf(contact: Contact, now_ms: number): Situation {
  const { autopilot, kind, latest } = contact;
  const { isHighLatency } = contact;
  const age_max_ms = isHighLatency ? Number.POSITIVE_INFINITY : heartbeat_fresh_ms;
  const heartbeat = latest.fresh('HEARTBEAT', age_max_ms, now_ms);
  const gps = receiverOf(latest, now_ms);
  const check = preArmCheck(autopilot, latest.fresh('SYS_STATUS', status_fresh_ms, now_ms));
  const mode = heartbeat ? flightMode(autopilot, kind, { ...heartbeat, offered: contact.modes }) : null;
  return {
    autopilot,
    kind,
    is_boat: contact.mav_type === type_boat,
    is_high_latency: isHighLatency,
    armed: heartbeat ? armedOf(contact, heartbeat, now_ms) : null,
    mode,
    modes: contact.modes,
    airborne: isAirborne(contact, now_ms),
    isOverturned: isMulticopter(contact) && contact.overturned.isEvident(now_ms),
    vtol_flight: vtolFlightOf(contact, now_ms),
    position: positionOf(contact, now_ms),
    home: homeOf(contact, now_ms),
    undulation_m: gps && undulation(gps),
    fence_rule: fenceRuleOf(contact),
    estimator: estimatorOf(contact, now_ms),
    pre_arm_check: check,
    pre_arm_reasons: check === false ? reasonsOf(contact, mode, now_ms) : [],
  };
}

function fenceRuleOf({ autopilot, latest }: Contact): Situation['fence_rule'] {
  const { flight_sw_version: version = 0 } = latest.last('AUTOPILOT_VERSION') ?? {};
  return autopilot === 'px4' && version !== 0 && version < px4_1_15 ? 'any' : 'each';
}

/** Returns the latest report of the receiver that has a fix. */
export function receiverOf(latest: Contact['latest'], now_ms: number): ReturnType<typeof bestReceiver> {
  const one = latest.fresh('GPS_RAW_INT', status_fresh_ms, now_ms);
  return bestReceiver(one, latest.fresh('GPS2_RAW', status_fresh_ms, now_ms));
}

/** Null: its report over the satellite does not contain it. Of two vehicles behind one address: whether one of them is. */
function armedOf(contact: Contact, heartbeat: Messages['HEARTBEAT'], now_ms: number): boolean | null {
  const { isHighLatency, latest, autopilot, armed_ms } = contact;
  if (contact.isShared(now_ms)) return now_ms - armed_ms < heartbeat_fresh_ms;
  const report = isHighLatency ? latest.last('HIGH_LATENCY2') : undefined;
  return report ? highLatencyArmed(report, autopilot) : isArmed(heartbeat);
}

/** Returns undefined without a recent report of the estimator. */
export function estimatorOf(
  { autopilot, kind, latest }: Contact,
  now_ms: number,
): EstimatorHealth | undefined {
  const px4 = latest.fresh('ESTIMATOR_STATUS', status_fresh_ms, now_ms);
  if (autopilot === 'px4') return px4 && px4Health(px4, kind);
  const ardupilot = latest.fresh('EKF_STATUS_REPORT', status_fresh_ms, now_ms);
  if (!ardupilot) return undefined;
  const heartbeat = latest.fresh('HEARTBEAT', status_fresh_ms, now_ms);
  return ardupilotHealth(ardupilot, { armed: heartbeat !== undefined && isArmed(heartbeat), kind });
}

/**
 * Whether the streamed position is valid. ArduPilot keeps streaming the last one after its receiver has lost the
 * satellites; only the fix and the estimator show it. PX4 sends a position only if it is valid.
 */
export function isPositionValid(contact: Contact, now_ms: number): boolean {
  const gps = receiverOf(contact.latest, now_ms);
  if (gps && gps.fix_type >= fix_2d) return true;
  const estimator = estimatorOf(contact, now_ms);
  if (estimator) return estimator.hasPosition;
  return contact.autopilot === 'px4' && !gps;
}

/** Returns the autopilot's own result; PX4 sets only the health bit, ArduPilot can have its checks disabled. */
export function preArmCheck(
  autopilot: Autopilot,
  status: Messages['SYS_STATUS'] | undefined,
): boolean | null {
  if (!status) return null;
  const is_healthy = (status.onboard_control_sensors_health & pre_arm_bit) !== 0;
  if (autopilot === 'px4') return is_healthy;
  if (autopilot !== 'ardupilot') return null;
  const is_present = (status.onboard_control_sensors_present & pre_arm_bit) !== 0;
  const is_enabled = (status.onboard_control_sensors_enabled & pre_arm_bit) !== 0;
  return is_present && is_enabled ? is_healthy : null;
}

/** Whether it reported since then that it enforces a fence. */
export function isFenceEnabled({ latest }: Contact, since_ms: number): boolean {
  const enabled = latest.since('SYS_STATUS', since_ms)?.onboard_control_sensors_enabled ?? 0;
  return (enabled & geofence_bit) !== 0;
}

/** An ArduPilot sends FENCE_STATUS while its fence is enabled (GCS_Fence.cpp). One that only reports breaches sets no bit. */
export function isFenceOff({ latest }: Pick<Contact, 'latest'>, now_ms: number): boolean {
  const status = latest.fresh('SYS_STATUS', status_fresh_ms, now_ms);
  const isReported = latest.fresh('FENCE_STATUS', fence_fresh_ms, now_ms) !== undefined;
  return status !== undefined && (status.onboard_control_sensors_enabled & geofence_bit) === 0 && !isReported;
}

function positionOf(contact: Contact, now_ms: number): Situation['position'] {
  const position = contact.latest.fresh('GLOBAL_POSITION_INT', position_fresh_ms, now_ms);
  if (!position || (position.lat === 0 && position.lon === 0)) return undefined;
  if (!isPositionValid(contact, now_ms)) return undefined;
  return { lat: position.lat / 1e7, lon: position.lon / 1e7, alt_amsl_m: position.alt / 1_000 };
}

function homeOf({ latest }: Contact, now_ms: number): Situation['home'] {
  const home = latest.fresh('HOME_POSITION', home_fresh_ms, now_ms);
  if (!home || (home.latitude === 0 && home.longitude === 0)) return undefined;
  return { lat: home.latitude / 1e7, lon: home.longitude / 1e7, alt_amsl_m: home.altitude / 1_000 };
}

/**
 * Whether it would fall without its motors. Rovers, boats and submarines never do, whatever they report: PX4 reports each
 * armed rover as airborne, and ArduPilot reports no landed state for them.
 */
function isAirborne(contact: Contact, now_ms: number): boolean | null {
  if (assetTypeOf(contact.kind) === 'vehicle') return false;
  if (contact.isShared(now_ms) && now_ms - contact.airborne_ms < status_fresh_ms) return true;
  const landed = contact.latest.fresh('EXTENDED_SYS_STATE', status_fresh_ms, now_ms)?.landed_state;
  if (landed !== undefined && landed !== landed_unknown) return landed !== landed_on_ground;
  const position = positionOf(contact, now_ms);
  const home = homeOf(contact, now_ms);
  return position && home ? position.alt_amsl_m - home.alt_amsl_m > flying_height_m : null;
}

/** Helicopters hover on their back, and planes and tailsitters on their tail. */
function isMulticopter({ autopilot, kind, mav_type }: Contact): boolean {
  return autopilot !== 'other' && kind === 'copter' && mav_type !== type_helicopter;
}

/** MAV_VTOL_STATE: in transition it counts as what it is about to be. */
const vtol_flights = [null, 'forward', 'hover', 'hover', 'forward'] as const;

function vtolFlightOf({ kind, latest }: Contact, now_ms: number): Situation['vtol_flight'] {
  if (kind !== 'vtol') return null;
  const state = latest.fresh('EXTENDED_SYS_STATE', status_fresh_ms, now_ms)?.vtol_state;
  return vtol_flights[state ?? 0] ?? null;
}

/** Returns the checks that PX4 reports as failed in its current mode; none without events. */
export function armingCauses(contact: Contact): readonly string[] {
  const { autopilot, kind, latest, modes: offered } = contact;
  const heartbeat = latest.last('HEARTBEAT');
  if (autopilot !== 'px4' || !heartbeat) return [];
  return causesOf(contact, flightMode(autopilot, kind, { ...heartbeat, offered }));
}

/** Returns the checks that PX4 reports as failed in the mode of this number. */
export function modeCauses(contact: Contact, custom_mode: number): readonly string[] {
  return causesOf(contact, flightMode(contact.autopilot, contact.kind, { base_mode: 1, custom_mode }));
}

function causesOf({ autopilot, events, metadata }: Contact, mode: string | null): readonly string[] {
  const textOf = (event: VehicleEvent): string | undefined => metadata?.textOf(event);
  return autopilot === 'px4' ? (events.armingReasons(mode, textOf) ?? []).slice(0, reasons_max) : [];
}

function reasonsOf(contact: Contact, mode: string | null, now_ms: number): readonly string[] {
  const recent = contact.texts.filter(
    ({ at_ms, text }) => now_ms - at_ms < reasons_fresh_ms && isArmingReason(text.text),
  );
  const reported = [...new Set(recent.map(({ text }) => text.text))].slice(-reasons_max);
  return [...reported, ...causesOf(contact, mode)];
}

// Health of the position estimator. Both autopilots use the same bits with different meanings, hence two functions.

interface EstimatorHealth {
  readonly ok: boolean;
  /** Whether it has an absolute horizontal position at all. */
  readonly hasPosition: boolean;
  /** Why it is not ok. */
  readonly reasons: readonly string[];
}

const attitude = 1;
const horizontal_velocity = 2;
/** Horizontal and vertical. */
const velocity = horizontal_velocity | 4;
const absolute_horizontal = 16;
const absolute_vertical = 32;
const constant_position = 128;
const predicted_absolute = 512;
const ardupilot_uninitialized = 1024;
const ardupilot_gps_glitch = 32768;
const px4_gps_glitch = 1024;
const px4_accel_error = 2048;

/** Default of ArduPilot's FS_EKF_THRESH, above which its failsafe acts. */
const ardupilot_variance_max = 0.8;
/** At a ratio of 1 PX4 rejects the measurement. */
const px4_ratio_max = 1;

/** Conditions of an unhealthy estimate, with their reasons. */
type Faults<T> = readonly (readonly [isFaulty: (report: T, armed: boolean) => boolean, reason: string])[];

const ardupilot_faults: Faults<Messages['EKF_STATUS_REPORT']> = [
  [({ flags }) => has(flags, ardupilot_uninitialized), 'not initialised'],
  [({ flags }) => !has(flags, attitude), 'no attitude'],
  [({ flags }) => !has(flags, velocity), 'no velocity'],
  // A disarmed vehicle has only a predicted absolute position.
  [
    ({ flags }, armed) => !has(flags, absolute_horizontal) && (armed || !has(flags, predicted_absolute)),
    'no horizontal position',
  ],
  [({ flags }) => !has(flags, absolute_vertical), 'no vertical position'],
  [({ flags }) => has(flags, constant_position), 'constant position mode'],
  [({ flags }) => has(flags, ardupilot_gps_glitch), 'GPS glitch'],
  [(report) => exceeds(report.velocity_variance, ardupilot_variance_max), 'velocity variance'],
  [(report) => exceeds(report.pos_horiz_variance, ardupilot_variance_max), 'horizontal position variance'],
  [(report) => exceeds(report.pos_vert_variance, ardupilot_variance_max), 'vertical position variance'],
  [(report) => exceeds(report.compass_variance, ardupilot_variance_max), 'compass variance'],
];

const px4_faults: Faults<Messages['ESTIMATOR_STATUS']> = [
  [({ flags }) => !has(flags, attitude), 'no attitude'],
  [({ flags }) => !has(flags, velocity), 'no velocity'],
  [({ flags }) => !has(flags, absolute_horizontal), 'no horizontal position'],
  [({ flags }) => !has(flags, absolute_vertical), 'no vertical position'],
  [({ flags }) => has(flags, px4_gps_glitch), 'GPS glitch'],
  [({ flags }) => has(flags, px4_accel_error), 'accelerometer error'],
  [(status) => exceeds(status.vel_ratio, px4_ratio_max), 'velocity innovation'],
  [(status) => exceeds(status.pos_horiz_ratio, px4_ratio_max), 'horizontal position innovation'],
  [(status) => exceeds(status.pos_vert_ratio, px4_ratio_max), 'vertical position innovation'],
  [(status) => exceeds(status.mag_ratio, px4_ratio_max), 'compass innovation'],
];

export function ardupilotHealth(
  report: Messages['EKF_STATUS_REPORT'],
  { armed, kind }: { readonly armed: boolean; readonly kind: Kind },
): EstimatorHealth {
  const { flags } = report;
  const expected = asExpected(report, kind);
  const reasons = ardupilot_faults
    .filter(([isFaulty]) => isFaulty(expected, armed))
    .map(([, reason]) => reason);
  const hasPosition = has(flags, absolute_horizontal) && !has(flags, constant_position);
  return { ok: reasons.length === 0, hasPosition, reasons };
}

/** `ESTIMATOR_STATUS`. PX4 sets the constant-position bit also in good health on the ground, so it is ignored. */
export function px4Health(status: Messages['ESTIMATOR_STATUS'], kind: Kind): EstimatorHealth {
  const expected = asExpected(status, kind);
  const reasons = px4_faults.filter(([isFaulty]) => isFaulty(expected, false)).map(([, reason]) => reason);
  return { ok: reasons.length === 0, hasPosition: has(status.flags, absolute_horizontal), reasons };
}

/**
 * No satellite is received under water: without one the estimator knows attitude and depth and keeps its place, with the flags 165
 * (ArduPilot#16018), and the failsafe of ArduSub looks at neither velocity nor position (ArduSub/failsafe.cpp).
 */
function asExpected<T extends { readonly flags: number }>(report: T, kind: Kind): T {
  if (kind !== 'sub') return report;
  const flags = (report.flags | horizontal_velocity | absolute_horizontal) & ~constant_position;
  return { ...report, flags };
}

/** Whether all of the bits are set. */
function has(flags: number, bits: number): boolean {
  return (flags & bits) === bits;
}

/** NaN is ignored: PX4 sends it for tests that it does not run. */
function exceeds(value: number, limit: number): boolean {
  return Number.isFinite(value) && value >= limit;
}
