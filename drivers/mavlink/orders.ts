/** What each command sends, and what must be seen before it counts as done. */
import type { Height } from './altitude.ts';
import type { Contact } from './contact.ts';
import type { Form, Order } from './exchange.ts';
import type { Waypoint } from './gate.ts';
import { distance_m } from './geo.ts';
import type { Messages } from './messages.ts';
import { flightMode, isHomeward, type ModeName, modeNumbers, type ModeNumbers } from './modes.ts';
import { armingCauses, isArmed, type Situation } from './situation.ts';

const command_return = 20;
const command_set_mode = 176;
const command_reposition = 192;
const command_arm = 400;
const effect_wait_ms = 3_000;
/** The target is echoed once a second. */
const goto_effect_wait_ms = 4_000;
const base_mode_custom = 1;
const base_mode_armed = 128;
const frame_global = 0;
const frame_global_relative_int = 6;
const target_tolerance_m = 1;

export function armOrder(armed: boolean): Order {
  return {
    what: armed ? 'arm' : 'disarm',
    command: command_arm,
    forms: ['long', 'int'],
    // param2 stays 0: the number that forces it is not in this program.
    send: (contact, how) => sendCommand(contact, { command: command_arm, param1: armed ? 1 : 0 }, how),
    may_resend: !armed,
    ...(armed ? { causes: armingCauses } : {}),
    expected: armed ? 'an armed vehicle' : 'a disarmed vehicle',
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => {
      const heartbeat = heard.since('HEARTBEAT', since_ms);
      return heartbeat !== undefined && isArmed(heartbeat) === armed;
    },
  };
}

export function returnOrder(): Order {
  return {
    what: 'return_home',
    command: command_return,
    forms: ['long', 'int'],
    send: (contact, how) => sendCommand(contact, { command: command_return }, how),
    may_resend: true,
    expected: 'a mode that returns home',
    effect_wait_ms,
    isSeen: (contact, since_ms) => isHomeward(modeOf(contact, since_ms)),
  };
}

export function modeOrder(
  mode: ModeName,
  { main, sub, custom_mode }: ModeNumbers,
  { autopilot, armed }: Situation,
): Order {
  const base_mode = base_mode_custom | (autopilot === 'px4' && armed ? base_mode_armed : 0);
  return {
    what: `set_mode ${mode}`,
    command: command_set_mode,
    forms: ['long', 'int'],
    send: (contact, how) =>
      sendCommand(contact, { command: command_set_mode, param1: base_mode, param2: main, param3: sub }, how),
    may_resend: mode === 'RTL' || mode === 'LAND' || mode === 'LOITER',
    expected: `mode ${mode}`,
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => heard.since('HEARTBEAT', since_ms)?.custom_mode === custom_mode,
    fallback: (contact) => {
      contact.send('SET_MODE', { target_system: contact.sysid, base_mode, custom_mode });
      return undefined;
    },
  };
}

/** PX4 reads the altitude as above sea level, whatever the frame says; ArduPilot knows its own home best. */
export function gotoOrder({ lat, lon }: Waypoint, height: Height, { autopilot, kind }: Situation): Order {
  const [frame, z_m] =
    autopilot === 'px4' ? [frame_global, height.amsl_m] : [frame_global_relative_int, height.above_home_m];
  const guided = modeNumbers(autopilot, kind, 'GUIDED');
  return {
    what: 'goto_waypoint',
    command: command_reposition,
    // COMMAND_LONG names no frame: only of PX4 is it known what it takes the altitude for.
    forms: autopilot === 'px4' ? ['int', 'long'] : ['int'],
    send: (contact, how) => {
      const place = { lat, lon, z_m, frame };
      sendCommand(contact, { command: command_reposition, ...reposition, place }, how);
    },
    ...(autopilot === 'ardupilot' && guided
      ? { fallback: (contact: Contact) => sendTarget(contact, { lat, lon, z_m }, guided) }
      : {}),
    may_resend: false,
    expected: 'the target in its own report',
    effect_wait_ms: goto_effect_wait_ms,
    isSeen: ({ heard }, since_ms) => {
      const echo = heard.since('POSITION_TARGET_GLOBAL_INT', since_ms);
      const is_guided = heard.since('HEARTBEAT', since_ms)?.custom_mode === guided?.custom_mode;
      // Rovers put no meaningful altitude into the echo.
      return (
        is_guided &&
        echo !== undefined &&
        isNear(echo, { lat, lon, amsl_m: kind === 'rover' ? undefined : height.amsl_m })
      );
    },
  };
}

interface Target {
  readonly lat: number;
  readonly lon: number;
  readonly amsl_m: number | undefined;
}

function isNear(echo: Messages['POSITION_TARGET_GLOBAL_INT'], { lat, lon, amsl_m }: Target): boolean {
  const off_m = distance_m({ lat: echo.lat_int / 1e7, lon: echo.lon_int / 1e7 }, { lat, lon });
  return (
    off_m <= target_tolerance_m && (amsl_m === undefined || Math.abs(echo.alt - amsl_m) <= target_tolerance_m)
  );
}

/** The mode of a heartbeat that came after `since_ms`. */
export function modeOf(
  { autopilot, kind, heard, modes: offered }: Contact,
  since_ms = Number.NEGATIVE_INFINITY,
): string | null {
  const heartbeat = heard.since('HEARTBEAT', since_ms);
  return heartbeat ? flightMode(autopilot, kind, { ...heartbeat, offered }) : null;
}

/** Default speed, change the mode if needed, no loiter radius, keep the heading. */
const reposition = { param1: -1, param2: 1, param3: 0, param4: Number.NaN } as const;

interface CommandFields {
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

function sendCommand(
  contact: Contact,
  { place, ...fields }: CommandFields,
  { form, confirmation }: { readonly form: Form; readonly confirmation: number },
): void {
  const target = { target_system: contact.sysid, target_component: contact.compid };
  const common = { param1: 0, param2: 0, param3: 0, param4: 0, ...fields, ...target };
  const { lat = 0, lon = 0, z_m = 0, frame = frame_global } = place ?? {};
  if (form === 'long') {
    contact.send('COMMAND_LONG', { ...common, confirmation, param5: lat, param6: lon, param7: z_m });
    return;
  }
  const [x, y] = [Math.round(lat * 1e7), Math.round(lon * 1e7)];
  contact.send('COMMAND_INT', { ...common, frame, x, y, z: z_m, current: 0, autocontinue: 0 });
}

/** Only the position counts: neither speeds nor accelerations nor a heading. */
const mask_position = 0x0df8;
const unused_motion = { vx: 0, vy: 0, vz: 0, afx: 0, afy: 0, afz: 0, yaw: 0, yaw_rate: 0 } as const;

/** The target as a message, which ArduPilot takes in GUIDED only, without a word otherwise. */
function sendTarget(
  contact: Contact,
  { lat, lon, z_m }: { readonly lat: number; readonly lon: number; readonly z_m: number },
  guided: ModeNumbers,
): string | undefined {
  if (contact.kind !== 'copter' && contact.kind !== 'rover')
    return 'this firmware does not support it on a vehicle of this kind';
  if (contact.heard.last('HEARTBEAT')?.custom_mode !== guided.custom_mode)
    return 'this firmware takes targets in GUIDED only; set that mode first';
  contact.send('SET_POSITION_TARGET_GLOBAL_INT', {
    time_boot_ms: 0,
    lat_int: Math.round(lat * 1e7),
    lon_int: Math.round(lon * 1e7),
    alt: z_m,
    ...unused_motion,
    type_mask: mask_position,
    target_system: contact.sysid,
    target_component: contact.compid,
    coordinate_frame: frame_global_relative_int,
  });
  return undefined;
}
