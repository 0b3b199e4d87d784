/** The messages that each command sends, and the effect that completes it. */
import type { Height } from './altitude.ts';
import { type Contact, isArmed } from '../vehicles/contact.ts';
import { isOnWayTo, isTargetShown, mayGoAround } from './target-shown.ts';
import {
  obstacleToDisarm,
  obstacleToForcedDisarm,
  obstacleToRepeat,
  obstacleToStop,
  obstacleToTakeOff,
  type Waypoint,
} from './gate.ts';
import { distance_m } from '../vehicles/geo.ts';
import { blank } from '../wire/messages.ts';
import { texts } from './texts.ts';
import {
  flightMode,
  isExternalMode,
  isHomeward,
  type ModeName,
  modeNumbers,
  type ModeNumbers,
} from '../vehicles/modes.ts';
import { armingCauses, isFenceEnabled, modeCauses, type Situation } from '../vehicles/situation.ts';
import type { Form, Order } from './ways.ts';

const command_return = 20;
const command_set_mode = 176;
const command_reposition = 192;
const command_arm = 400;
/** Of ArduPilot and PX4. */
const disarm_forced = 21_196;
const command_takeoff = 22;
const command_mission_start = 300;
const command_change_speed = 178;
const speed_airspeed = 0;
const speed_ground = 1;
const landed_in_air = 2;
const landed_taking_off = 3;
/** Motors spool up, and the vehicle reports its state once a second. */
const takeoff_effect_wait_ms = 10_000;
const effect_wait_ms = 3_000;
const fence_fresh_ms = 5_000;
/** The vehicle reports its target once a second, and its way to it when it is asked. */
const goto_effect_wait_ms = 6_000;
const base_mode_custom = 1;
const base_mode_armed = 128;
const frame_global = 0;
const frame_global_relative_int = 6;
/** A vehicle stops this near, and this far for its speed. */
const stop_near_m = 15;
const stop_time_s = 4;

/** Modes that stop a vehicle or bring it to safety, which LOITER does not: the height of a copter follows the pilot's stick in it. */
const resent_modes: ReadonlySet<string> = new Set(['RTL', 'LAND', 'hold', 'SURFACE']);

export function armOrder(): Order {
  return { ...armingOrder(true, 0), what: 'arm', may_resend: false, causes: armingCauses };
}

/** `isForced`: also a vehicle that takes itself for flying. */
export function disarmOrder({ isForced }: { readonly isForced: boolean }): Order {
  return {
    ...armingOrder(false, isForced ? disarm_forced : 0),
    what: 'disarm',
    may_resend: true,
    obstacle: isForced ? obstacleToForcedDisarm : obstacleToDisarm,
    ignores_mode: true,
  };
}

/** Both autopilots stop the motors then, wherever the vehicle is (PX4-Autopilot#14465, mavlink#519). */
export function stopOrder(): Order {
  return { ...disarmOrder({ isForced: true }), what: 'emergency_stop', obstacle: obstacleToStop };
}

/** Arming is never forced. */
function armingOrder(armed: boolean, param2: number): Omit<Order, 'may_resend' | 'what'> {
  return {
    command: command_arm,
    forms: ['long', 'int'],
    send: (contact, how) =>
      sendCommand(contact, { command: command_arm, param1: armed ? 1 : 0, param2 }, how),
    expected: armed ? texts.expects_armed : texts.expects_disarmed,
    effect_wait_ms,
    isObserved: ({ latest }, since_ms) => {
      const heartbeat = latest.since('HEARTBEAT', since_ms);
      return heartbeat !== undefined && isArmed(heartbeat) === armed;
    },
  };
}

/** A Blimp of ArduPilot has the mode and not the command (GCS_MAVLink_Blimp.cpp). */
export function returnOrder(situation: Pick<Situation, 'armed' | 'autopilot' | 'kind' | 'mode'>): Order {
  const { autopilot, kind, mode: before } = situation;
  const numbers = kind === 'blimp' ? modeNumbers(autopilot, kind, 'RTL') : undefined;
  if (autopilot === 'ardupilot' && numbers)
    return { ...modeOrder('RTL', numbers, situation), what: 'return_home' };
  return {
    what: 'return_home',
    command: command_return,
    forms: ['long', 'int'],
    send: (contact, how) => sendCommand(contact, { command: command_return }, how),
    may_resend: true,
    obstacle: obstacleToRepeat,
    expected: texts.expects_homeward,
    effect_wait_ms,
    isObserved: (contact, since_ms) => {
      const mode = contact.latest.since('HEARTBEAT', since_ms)?.custom_mode ?? Number.NaN;
      const isHome = contact.recovery_modes.has(mode) || isHomeward(modeOf(contact, since_ms));
      return isHome || isReplaced(contact, since_ms, { command: command_return, before });
    },
  };
}

/** Whether a PX4 accepted the command, and changed to an external mode for it. */
function isReplaced(
  contact: Contact,
  since_ms: number,
  { command, before }: { readonly command: number; readonly before: string | null },
): boolean {
  const { acks, autopilot, latest } = contact;
  const mode = latest.since('HEARTBEAT', since_ms)?.custom_mode;
  if (mode === undefined || !isExternalMode(autopilot, mode) || modeOf(contact) === before) return false;
  return acks.some(({ ack, at_ms }) => ack.command === command && ack.result === 0 && at_ms >= since_ms);
}

/** `hold`, a mode of the interface, or one of a single kind of vehicle. */
export function modeOrder(
  mode: ModeName | 'hold' | 'SURFACE' | 'TAKEOFF',
  { main, sub, custom_mode }: ModeNumbers,
  { autopilot, armed, mode: before }: Pick<Situation, 'armed' | 'autopilot' | 'mode'>,
): Order {
  const base_mode = base_mode_custom | (autopilot === 'px4' && armed ? base_mode_armed : 0);
  return {
    what: mode === 'hold' ? 'hold' : `set_mode ${mode}`,
    command: command_set_mode,
    forms: ['long', 'int'],
    send: (contact, how) =>
      sendCommand(contact, { command: command_set_mode, param1: base_mode, param2: main, param3: sub }, how),
    may_resend: resent_modes.has(mode),
    // A disarmed vehicle may be given most modes.
    ...(armed === false ? {} : { obstacle: obstacleToRepeat }),
    expected: mode === 'hold' ? texts.expects_hold : texts.expects_mode(mode),
    effect_wait_ms,
    causes: (contact) => modeCauses(contact, custom_mode),
    isObserved: (contact, since_ms) =>
      contact.latest.since('HEARTBEAT', since_ms)?.custom_mode === custom_mode ||
      // A quadplane may return as a copter instead (Q_RTL_MODE).
      (mode === 'RTL' && contact.kind === 'vtol' && isHomeward(modeOf(contact, since_ms))) ||
      isReplaced(contact, since_ms, { command: command_set_mode, before }),
    fallback: (contact) =>
      contact.send('SET_MODE', { target_system: contact.sysid, base_mode, custom_mode })
        ? undefined
        : texts.fallback_unsent,
  };
}

/**
 * ArduCopter takes off from the ground in its mission only after the command for it, which arms nothing. The same command arms a
 * PX4, which gets the mode instead.
 */
export function missionOrder(
  what: 'resume_mission' | 'start_mission',
  numbers: ModeNumbers,
  situation: Situation,
): Order {
  const { fallback: _, ...order } = modeOrder('AUTO', numbers, situation);
  if (situation.autopilot === 'px4') return { ...order, what };
  return {
    ...order,
    what,
    command: command_mission_start,
    send: (contact, how) => sendCommand(contact, { command: command_mission_start }, how),
  };
}

/** PX4 reads the altitude as above sea level, whatever the frame; ArduPilot gets it relative to its exact home. */
export function gotoOrder(
  { lat, lon }: Waypoint,
  height: Height,
  { autopilot, kind }: Situation,
  /** Of the circle that a plane flies; its own when omitted. */
  circle: Pick<CommandFields, 'param3' | 'param4'> = {},
): Order {
  const [frame, z_m] =
    autopilot === 'px4' ? [frame_global, height.amsl_m] : [frame_global_relative_int, height.above_home_m];
  const guided = modeNumbers(autopilot, kind, 'GUIDED');
  // The heading of other vehicles is the direction of the circle for an ArduPlane, which takes NaN as counter-clockwise.
  const clockwise = autopilot === 'ardupilot' ? { param4: 0 } : {};
  return {
    what: 'goto_waypoint',
    command: command_reposition,
    // COMMAND_LONG has no frame: only PX4 is known to interpret its altitude as above sea level.
    forms: autopilot === 'px4' ? ['int', 'long'] : ['int'],
    send: (contact, how) => {
      if (mayGoAround(contact)) contact.streams?.requestReport('way');
      const place = { lat, lon, z_m, frame };
      const fields = { command: command_reposition, ...reposition, ...clockwise, ...circle, place };
      return sendCommand(contact, fields, how);
    },
    ...(autopilot === 'ardupilot' && guided
      ? { fallback: (contact: Contact) => sendTarget(contact, { lat, lon, z_m }, guided) }
      : {}),
    may_resend: false,
    obstacle: obstacleToRepeat,
    causes: (contact) =>
      isFenceEnabled(contact, performance.now() - fence_fresh_ms) ? [texts.fence_enabled] : [],
    expected: texts.expects_target,
    effect_wait_ms: goto_effect_wait_ms,
    shown_in: 'POSITION_TARGET_GLOBAL_INT',
    isObserved: (contact, since_ms) => {
      const is_guided = contact.latest.since('HEARTBEAT', since_ms)?.custom_mode === guided?.custom_mode;
      if (!is_guided) return false;
      const isShown = isTargetShown(contact, { lat, lon }, height, since_ms);
      return isShown || isOnWayTo(contact, { lat, lon }, since_ms);
    },
  };
}

/**
 * Holding of PX4. It flies to points in its hold mode, so the mode alone neither stops it nor shows that it has stopped: the
 * target that it reports must be where it is.
 */
export function px4HoldOrder({ custom_mode }: ModeNumbers): Order {
  const here = { lat: Number.NaN, lon: Number.NaN, z_m: Number.NaN, frame: frame_global };
  return {
    what: 'hold',
    command: command_reposition,
    forms: ['long'],
    send: (contact, how) =>
      sendCommand(contact, { command: command_reposition, ...reposition, place: here }, how),
    may_resend: true,
    obstacle: obstacleToRepeat,
    expected: texts.expects_hold,
    effect_wait_ms: goto_effect_wait_ms,
    shown_in: 'POSITION_TARGET_GLOBAL_INT',
    isObserved: ({ latest }, since_ms) => {
      const target = latest.since('POSITION_TARGET_GLOBAL_INT', since_ms);
      const at = latest.since('GLOBAL_POSITION_INT', since_ms);
      if (!target || !at || latest.since('HEARTBEAT', since_ms)?.custom_mode !== custom_mode) return false;
      const off_m = distance_m(
        { lat: target.lat_int / 1e7, lon: target.lon_int / 1e7 },
        { lat: at.lat / 1e7, lon: at.lon / 1e7 },
      );
      return off_m <= stop_near_m + (stop_time_s * Math.hypot(at.vx, at.vy)) / 100;
    },
  };
}

/**
 * PX4 gets the altitude above sea level, an ArduCopter the height above home, a quadplane the height above where it stands. The
 * place is where the vehicle stands.
 */
export function takeoffOrder(height: Height, { autopilot, kind, position }: Situation): Order {
  const is_px4 = autopilot === 'px4';
  const isFromGround = kind === 'vtol' && position !== undefined;
  const ardupilot_m = isFromGround ? height.amsl_m - position.alt_amsl_m : height.above_home_m;
  const here = is_px4 ? Number.NaN : 0;
  const param4 = is_px4 ? Number.NaN : 0;
  const place = {
    lat: here,
    lon: here,
    z_m: is_px4 ? height.amsl_m : ardupilot_m,
    frame: frame_global,
  };
  return {
    what: 'takeoff',
    command: command_takeoff,
    forms: ['long'],
    send: (contact, how) => sendCommand(contact, { command: command_takeoff, param4, place }, how),
    may_resend: false,
    obstacle: obstacleToTakeOff,
    expected: texts.expects_airborne,
    effect_wait_ms: takeoff_effect_wait_ms,
    shown_in: 'EXTENDED_SYS_STATE',
    isObserved: isAirborne,
  };
}

/** Whether it reported since then that it flies. */
export function isAirborne({ latest }: Contact, since_ms: number): boolean {
  const state = latest.since('EXTENDED_SYS_STATE', since_ms)?.landed_state;
  return state === landed_in_air || state === landed_taking_off;
}

/** Whether the speed of the vehicle is that through the air. PX4 ignores a speed over ground in forward flight. */
export function isAirspeed({ autopilot, kind, vtol_flight }: Situation): boolean {
  return kind === 'plane' || (kind === 'vtol' && (autopilot === 'ardupilot' || vtol_flight === 'forward'));
}

/** No autopilot reports the speed that was set: its answer is all that can be known. */
export function speedOrder(speed_mps: number, situation: Situation): Order {
  const param1 = isAirspeed(situation) ? speed_airspeed : speed_ground;
  return {
    what: 'set_speed',
    command: command_change_speed,
    forms: ['long', 'int'],
    send: (contact, how) =>
      sendCommand(contact, { command: command_change_speed, param1, param2: speed_mps, param3: -1 }, how),
    may_resend: false,
    obstacle: obstacleToRepeat,
    expected: texts.expects_answer,
    effect_wait_ms: 0,
    isUnobservable: true,
    isObserved: () => false,
  };
}

/** Returns the mode of a heartbeat received after `since_ms`. */
export function modeOf(
  { autopilot, kind, latest, modes: offered }: Contact,
  since_ms = Number.NEGATIVE_INFINITY,
): string | null {
  const heartbeat = latest.since('HEARTBEAT', since_ms);
  return heartbeat ? flightMode(autopilot, kind, { ...heartbeat, offered }) : null;
}

/** Default speed, mode change if needed, no loiter radius, unchanged heading. */
export const reposition = { param1: -1, param2: 1, param3: 0, param4: Number.NaN } as const;

export interface CommandFields {
  readonly command: number;
  readonly param1?: number;
  readonly param2?: number;
  readonly param3?: number;
  readonly param4?: number;
  readonly place?: {
    readonly lat: number;
    readonly lon: number;
    readonly z_m: number;
    readonly frame: number;
  };
}

export function sendCommand(
  contact: Contact,
  { place, ...fields }: CommandFields,
  { form, confirmation }: { readonly form: Form; readonly confirmation: number },
): boolean {
  const common = { param1: 0, param2: 0, param3: 0, param4: 0, ...fields, ...contact.target };
  const { lat = 0, lon = 0, z_m = 0, frame = frame_global } = place ?? {};
  if (form === 'long') {
    return contact.send('COMMAND_LONG', { ...common, confirmation, param5: lat, param6: lon, param7: z_m });
  }
  const [x, y] = [Math.round(lat * 1e7), Math.round(lon * 1e7)];
  return contact.send('COMMAND_INT', { ...common, frame, x, y, z: z_m, current: 0, autocontinue: 0 });
}

/** Uses the position only: no speeds, accelerations or heading. */
const mask_position = 0x0df8;

/** Sends the target as a message, which ArduPilot accepts in GUIDED only and otherwise ignores silently. */
function sendTarget(
  contact: Contact,
  { lat, lon, z_m }: { readonly lat: number; readonly lon: number; readonly z_m: number },
  guided: ModeNumbers,
): string | undefined {
  if (contact.kind !== 'copter' && contact.kind !== 'rover') return texts.fallback_kind;
  if (contact.latest.last('HEARTBEAT')?.custom_mode !== guided.custom_mode) return texts.fallback_mode;
  const isSent = contact.send('SET_POSITION_TARGET_GLOBAL_INT', {
    ...blank('SET_POSITION_TARGET_GLOBAL_INT'),
    lat_int: Math.round(lat * 1e7),
    lon_int: Math.round(lon * 1e7),
    alt: z_m,
    type_mask: mask_position,
    ...contact.target,
    coordinate_frame: frame_global_relative_int,
  });
  return isSent ? undefined : texts.fallback_unsent;
}
