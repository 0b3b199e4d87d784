/**
 * Decodes PX4 events as far as possible without the metadata file of each firmware: which checks prevent arming.
 * The Events Interface of MAVLink, with the layout of PX4 1.14 and later.
 */
import type { FailsafeType } from '../../../src/contract/drone-feeds.ts';
import type { Messages } from '../wire/messages.ts';

export type VehicleEvent = Messages['EVENT'];

const name_bits = 0xff_ff_ff;
const fnv_offset = 0x811c_9dc5;
const fnv_prime = 0x0100_0193;
const component_autopilot = 1;

/** Returns the id of an event: the FNV-1a hash of its name, below the number of the component that defines it. */
export function eventId(name: string): number {
  let hash = fnv_offset;
  for (const char of name) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), fnv_prime);
  return (component_autopilot * 2 ** 24 + (hash & name_bits)) >>> 0;
}

const arming_summary = eventId('commander_arming_check_summary');
const health_summary = eventId('commander_health_summary');

/** What PX4's checks before arming mean, by the name of their event. The full list is in a file of each firmware. */
const px4_check_texts = {
  check_modes_cannot_takeoff: 'this flight mode does not allow arming',
  check_modes_angular_velocity: 'no valid angular velocity',
  check_modes_attitude: 'no valid attitude',
  check_modes_local_pos: 'no valid position',
  check_modes_global_pos: 'no valid global position',
  check_modes_local_alt: 'no valid altitude',
  check_modes_mission: 'no valid mission',
  check_modes_home_position: 'home position is not set',
  check_modes_manual_control: 'no manual control input',
  check_modes_not_supported: 'this flight mode is not supported',
  check_modes_offboard_signal: 'no offboard setpoints',
  check_rc_dl_no_dllink: 'no ground station connected (NAV_DLL_ACT requires one)',
  check_battery_missing: 'a required battery is missing',
  check_battery_disconnected: 'a battery was disconnected',
  check_avionics_power_missing: 'no power module connected',
  check_mag_missing: 'a compass is missing',
  check_mag_no_data: 'a compass sends no data',
  check_estimator_missing_data: 'the estimator has not started',
  check_estimator_heading_not_stable: 'heading estimate is not stable yet',
  check_estimator_hor_vel_not_stable: 'horizontal velocity estimate is not stable yet',
  check_estimator_vert_vel_not_stable: 'vertical velocity estimate is not stable yet',
  check_estimator_hgt_not_stable: 'height estimate is not stable yet',
  check_estimator_mag_interference: 'strong magnetic interference',
  check_estimator_hgt_est_err: 'height estimate is inconsistent',
  check_estimator_vel_est_err: 'velocity estimate is inconsistent',
  check_estimator_pos_est_err: 'position estimate is inconsistent',
  check_estimator_yaw_est_err: 'heading estimate is inconsistent',
  check_estimator_gps_fix_too_low: 'GPS has no sufficient fix',
  check_estimator_gps_num_sats_too_low: 'too few GPS satellites',
  check_estimator_gps_pdop_too_high: 'GPS geometry (PDOP) is too poor',
  check_estimator_gps_hor_pos_err_too_high: 'horizontal GPS error is too large',
  check_estimator_gps_vert_pos_err_too_high: 'vertical GPS error is too large',
  check_estimator_gps_speed_acc_too_low: 'GPS speed is too inaccurate',
  check_estimator_gps_hor_pos_drift_too_high: 'GPS position drifts horizontally',
  check_estimator_gps_vert_pos_drift_too_high: 'GPS position drifts vertically',
  check_estimator_gps_hor_speed_drift_too_high: 'GPS reports horizontal speed while standing',
  check_estimator_gps_vert_speed_drift_too_high: 'GPS reports vertical speed while standing',
  check_estimator_gps_not_fusing: 'the estimator does not use GPS',
  check_estimator_gps_generic: 'GPS quality is too poor',
  check_estimator_high_accel_bias: 'accelerometer bias is too high; recalibrate',
  check_estimator_high_gyro_bias: 'gyroscope bias is too high; recalibrate',
  check_system_flight_term_active: 'flight terminated',
  check_system_usb_connected: 'USB is connected',
  check_system_no_global_pos: 'no global position (COM_ARM_WO_GPS requires one)',
  check_system_no_home_pos: 'home position is not set (COM_ARM_WO_GPS requires one)',
  check_system_safety_button: 'the safety button was not pressed',
  check_system_vtol_in_transition: 'the vehicle is in transition',
  check_system_vtol_in_fw_mode: 'the vehicle is not in multicopter mode',
  check_system_arm_auth_failed: 'arming was not authorised',
} as const;

/** Texts of the most common checks by id; others are named by their component and number. */
const check_texts: ReadonlyMap<number, string> = new Map(
  Object.entries(px4_check_texts).map(([name, sentence]) => [eventId(name), sentence]),
);

/** PX4's `health_component_t`, by number. */
const components =
  'unassigned,absolute pressure,differential pressure,GPS,optical flow,vision position,distance sensor,remote control,motors and ESCs,UTM,logging,battery,communication links,rate controller,attitude controller,position controller,attitude estimate,local position estimate,mission,avoidance,system,camera,gimbal,payload,global position estimate,storage,parachute,magnetometer,accelerometer,gyroscope,open drone id'.split(
    ',',
  );

/** PX4's `navigation_mode_group_t`: the bit of each mode, by the displayed name of the mode. */
const mode_bits: Readonly<Record<string, number>> = {
  MANUAL: 0,
  ALTCTL: 1,
  POSCTL: 2,
  MISSION: 3,
  LOITER: 4,
  RTL: 5,
  ACRO: 10,
  OFFBOARD: 14,
  STABILIZED: 15,
  TAKEOFF: 17,
  LAND: 18,
  FOLLOW: 19,
  PRECLAND: 20,
  VTOL_TAKEOFF: 22,
};

const level_bits = 0x0f;
const level_warning = 4;
const level_info = 6;
const sequence_mask = 0xff_ff;
/** PX4 queues at most this many checks for a report. */
const report_events_max = 64;

/** Returns the level: 0 emergency to 7 debug; higher: for machines, or not for us. */
export function eventLevel({ log_levels }: VehicleEvent): number {
  return log_levels & level_bits;
}

/** Returns the text of an event; undefined if only the firmware's metadata file has it. */
export function eventText({ id }: VehicleEvent): string | undefined {
  return check_texts.get(id);
}

/** Returns the latest complete report: it is enclosed by two summaries, whose sequence numbers bound it. */
function newestReport(events: ReadonlyMap<number, VehicleEvent>): readonly VehicleEvent[] | undefined {
  for (const end of [...events.values()].toReversed()) {
    if (end.id !== health_summary) continue;
    const checks: VehicleEvent[] = [];
    for (let back = 1; back <= report_events_max; back += 1) {
      const event = events.get((end.sequence - back) & sequence_mask);
      if (!event) break;
      if (event.id === arming_summary) return checks.toReversed();
      checks.push(event);
    }
  }
  return undefined;
}

/** Whether a check prevents arming in `mode`: warnings do not, and some checks apply to other modes only. */
function concerns(event: VehicleEvent, mode: string | null): boolean {
  const level = eventLevel(event);
  if (level === level_warning || level > level_info) return false;
  const bit = mode === null ? undefined : mode_bits[mode];
  return bit === undefined || ((modesOf(event) >>> bit) & 1) === 1;
}

/** Reads the 32 mode bits, the first argument of every check; the second one is the component. */
function modesOf({ arguments: bytes }: VehicleEvent): number {
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}

function checkText(event: VehicleEvent, text: string | undefined): string {
  const component = components[event.arguments[4] ?? 0] ?? `component ${event.arguments[4]}`;
  return `${component}: ${text ?? eventText(event) ?? `check ${event.id} failed`}`;
}

// Failsafes: PX4-Autopilot, src/modules/commander/failsafe/framework.cpp (1.14 and later).

/** Events with which a failsafe begins: where their argument with the cause stands; null: the failed checks tell. */
const failsafe_events: ReadonlyMap<number, number | null> = new Map([
  [eventId('commander_failsafe_enter'), 5],
  [eventId('commander_failsafe_enter_hold'), 7],
  [eventId('commander_failsafe_enter_generic'), null],
  [eventId('commander_failsafe_enter_generic_hold'), null],
]);
/** PX4's `failsafe_cause_t`, from 1. */
const cause_types: readonly FailsafeType[] = ['rc', 'link', 'battery', 'battery', 'battery', 'battery'];
const component_types: Readonly<Partial<Record<string, FailsafeType>>> = {
  GPS: 'ekf',
  'remote control': 'rc',
  'motors and ESCs': 'motor',
  battery: 'battery',
  'communication links': 'link',
  'attitude estimate': 'ekf',
  'local position estimate': 'ekf',
  'global position estimate': 'ekf',
};

// Collects the numbered events of one autopilot and requests lost ones, by the Events Interface of MAVLink.

/** First and last sequence number to request. */
interface MissedEvents {
  readonly first_sequence: number;
  readonly last_sequence: number;
}

/** Half of the sequence numbers: a larger distance ahead means behind. */
const ahead_max = 0x80_00;
const events_max = 64;
/** Autopilots keep about this many; older ones cannot be requested. */
const missed_max = 16;
const asks_max = 3;
const ask_pause_ms = 1_000;
const flag_reset = 1;

export class EventIntake {
  /** By sequence number, oldest first. */
  readonly #events = new Map<number, VehicleEvent>();
  /** Number of requests by lost sequence number. */
  readonly #missed = new Map<number, number>();
  #newest: number | undefined;
  #asked_ms = Number.NEGATIVE_INFINITY;

  /** Stores an event; returns false if it was received before. */
  take(event: VehicleEvent): boolean {
    if (this.#events.has(event.sequence)) return false;
    this.#begin(event.sequence);
    this.#missed.delete(event.sequence);
    this.#advance(event.sequence, event.sequence - 1);
    this.#events.set(event.sequence, event);
    const [oldest] = this.#events.keys();
    if (this.#events.size > events_max && oldest !== undefined) this.#events.delete(oldest);
    return true;
  }

  /** Receives the newest sequence number of the autopilot. */
  current({ sequence, flags }: { readonly sequence: number; readonly flags: number }): void {
    if ((flags & flag_reset) !== 0) this.#newest = undefined;
    this.#begin(sequence);
    this.#advance(sequence, sequence);
  }

  /** Drops requests for events that the autopilot no longer has. */
  gone(oldest: number): void {
    for (const sequence of this.#missed.keys()) {
      if (((oldest - sequence) & sequence_mask) < ahead_max && sequence !== oldest)
        this.#missed.delete(sequence);
    }
  }

  /** Returns the range to request now. */
  next(now_ms: number): MissedEvents | undefined {
    if (this.#missed.size === 0 || now_ms - this.#asked_ms < ask_pause_ms) return undefined;
    const [first] = this.#missed.keys();
    if (first === undefined) return undefined;
    this.#asked_ms = now_ms;
    let last = first;
    while (this.#missed.has((last + 1) & sequence_mask)) last = (last + 1) & sequence_mask;
    for (let each = first; each !== ((last + 1) & sequence_mask); each = (each + 1) & sequence_mask) {
      const asks = (this.#missed.get(each) ?? 0) + 1;
      if (asks >= asks_max) this.#missed.delete(each);
      else this.#missed.set(each, asks);
    }
    return { first_sequence: first, last_sequence: last };
  }

  /** Returns why the vehicle cannot be armed in `mode`; undefined without a complete report of its checks. */
  armingReasons(
    mode: string | null,
    textOf: (event: VehicleEvent) => string | undefined = eventText,
  ): readonly string[] | undefined {
    const checks = newestReport(this.#events)?.filter((event) => concerns(event, mode));
    return checks && [...new Set(checks.map((check) => checkText(check, textOf(check))))];
  }

  /** Returns the failsafes that begin with an event; none with other events. */
  failsafesOf(event: VehicleEvent): readonly FailsafeType[] {
    const cause_at = failsafe_events.get(event.id);
    if (cause_at === undefined) return [];
    if (cause_at !== null) return [cause_types[(event.arguments[cause_at] ?? 0) - 1] ?? 'other'];
    const failed = (newestReport(this.#events) ?? []).filter((check) => concerns(check, null));
    const types = failed.flatMap(
      ({ arguments: about }) => component_types[components[about[4] ?? 0] ?? ''] ?? [],
    );
    return types.length > 0 ? [...new Set(types)] : ['other'];
  }

  /** Clears everything after a restart of the autopilot. */
  restart(): void {
    this.#events.clear();
    this.#missed.clear();
    this.#newest = undefined;
  }

  /** Also requests events from before the first one: checks that failed earlier are not reported again. */
  #begin(sequence: number): void {
    this.#newest ??= (sequence - Math.min(sequence, missed_max)) & sequence_mask;
  }

  /** Advances to `newest`; marks all after the previous newest, up to `missed_until`, as lost. */
  #advance(newest: number, missed_until: number): void {
    const known = this.#newest;
    const ahead = known === undefined ? 0 : (newest - known) & sequence_mask;
    if (known !== undefined && (ahead === 0 || ahead >= ahead_max)) return;
    this.#newest = newest;
    if (known === undefined) return;
    const lost = (missed_until - known) & sequence_mask;
    for (let back = Math.min(lost, missed_max) - 1; back >= 0; back -= 1) {
      this.#missed.set((missed_until - back) & sequence_mask, 0);
    }
    for (const sequence of this.#missed.keys()) {
      if (this.#missed.size <= missed_max) break;
      this.#missed.delete(sequence);
    }
  }
}
