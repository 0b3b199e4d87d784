/**
 * What the events of PX4 say, as far as it can be told without the file of texts that belongs to each firmware: which
 * checks keep the vehicle from being armed. The Events Interface of MAVLink, with the layout of PX4 1.14 and later.
 */
import type { Messages } from './messages.ts';

export type VehicleEvent = Messages['EVENT'];

const name_bits = 0xff_ff_ff;
const fnv_offset = 0x811c_9dc5;
const fnv_prime = 0x0100_0193;
const component_autopilot = 1;

/** The number of an event is the FNV-1a hash of its name, below the number of the component that defines it. */
export function eventId(name: string): number {
  let hash = fnv_offset;
  for (const char of name) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), fnv_prime);
  return (component_autopilot * 2 ** 24 + (hash & name_bits)) >>> 0;
}

const arming_summary = eventId('commander_arming_check_summary');
const health_summary = eventId('commander_health_summary');

/** Checks that are met most often, in words of our own; the others are named by what they check. */
const sentences: ReadonlyMap<number, string> = new Map(
  Object.entries({
    check_modes_cannot_takeoff: 'this flight mode cannot be armed in',
    check_modes_angular_velocity: 'no valid angular velocity',
    check_modes_attitude: 'no valid attitude',
    check_modes_local_pos: 'no valid position',
    check_modes_global_pos: 'no valid global position',
    check_modes_local_alt: 'no valid altitude',
    check_modes_mission: 'no valid mission',
    check_modes_home_position: 'the home position is not set',
    check_modes_manual_control: 'no input from the sticks',
    check_modes_not_supported: 'this flight mode is not supported',
    check_estimator_missing_data: 'the estimator has not begun',
    check_system_flight_term_active: 'the flight was terminated',
  }).map(([name, sentence]) => [eventId(name), sentence]),
);

/** PX4's `health_component_t`, by number. */
const components =
  'unassigned,absolute pressure,differential pressure,GPS,optical flow,vision position,distance sensor,remote control,motors and ESCs,UTM,logging,battery,communication links,rate controller,attitude controller,position controller,attitude estimate,local position estimate,mission,avoidance,system,camera,gimbal,payload,global position estimate,storage,parachute,magnetometer,accelerometer,gyroscope,open drone id'.split(
    ',',
  );

/** PX4's `navigation_mode_group_t`: the bit of each mode, by the name under which we show the mode. */
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
/** No report has more checks than PX4 can queue. */
const report_events_max = 64;

/** 0 emergency to 7 debug; beyond: for machines, or not for us. */
export function eventLevel({ log_levels }: VehicleEvent): number {
  return log_levels & level_bits;
}

/** In words when they are known without the firmware's file. */
export function eventText({ id }: VehicleEvent): string | undefined {
  return sentences.get(id);
}

/**
 * The checks that keep the vehicle from being armed in `mode`, from the newest report that came whole. A report stands
 * between two summaries, whose sequence numbers bound it. Undefined when there is none.
 */
export function armingReasons(
  events: ReadonlyMap<number, VehicleEvent>,
  mode: string | null,
): readonly string[] | undefined {
  const report = newestReport(events);
  if (!report) return undefined;
  const checks = report.filter((event) => concerns(event, mode));
  return [...new Set(checks.map(checkText))];
}

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

/** Warnings do not keep a vehicle on the ground; some checks hold for other modes only. */
function concerns(event: VehicleEvent, mode: string | null): boolean {
  const level = eventLevel(event);
  if (level === level_warning || level > level_info) return false;
  const bit = mode === null ? undefined : mode_bits[mode];
  return bit === undefined || ((modesOf(event) >>> bit) & 1) === 1;
}

/** The first two arguments of every check: 32 bits of modes, and the component. */
function modesOf({ arguments: bytes }: VehicleEvent): number {
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}

function checkText(event: VehicleEvent): string {
  const component = components[event.arguments[4] ?? 0] ?? `component ${event.arguments[4]}`;
  return `${component}: ${eventText(event) ?? `check ${event.id} failed`}`;
}
