/** Flight modes: names of reported numbers, numbers for `set_mode`, and the mode in which a vehicle stays where it is. */
import type { Autopilot, Kind } from '../reports/kind.ts';

/** The modes that `set_mode` of the interface accepts. */
export const mode_names = ['GUIDED', 'AUTO', 'LOITER', 'RTL', 'LAND'] as const;
export type ModeName = (typeof mode_names)[number];

/** Parameters of `MAV_CMD_DO_SET_MODE`, and the `custom_mode` that confirms the change. */
export interface ModeNumbers {
  readonly main: number;
  /** PX4 only. */
  readonly sub: number;
  readonly custom_mode: number;
}

const base_mode_custom = 1;
/** QLAND of ArduPlane. */
const qland = 20;
/** Names in the order of their numbers; `-` is an unused number. */
const arducopter =
  'STABILIZE ACRO ALT_HOLD AUTO GUIDED LOITER RTL CIRCLE - LAND - DRIFT - SPORT FLIP AUTOTUNE POSHOLD BRAKE THROW AVOID_ADSB GUIDED_NOGPS SMART_RTL FLOWHOLD FOLLOW ZIGZAG SYSTEMID AUTOROTATE AUTO_RTL TURTLE';
const arduplane =
  'MANUAL CIRCLE STABILIZE TRAINING ACRO FBWA FBWB CRUISE AUTOTUNE - AUTO RTL LOITER TAKEOFF AVOID_ADSB GUIDED INITIALISING QSTABILIZE QHOVER QLOITER QLAND QRTL QAUTOTUNE QACRO THERMAL LOITER_ALT_QLAND AUTOLAND';
const ardurover =
  'MANUAL ACRO - STEERING HOLD LOITER FOLLOW SIMPLE DOCK CIRCLE AUTO RTL SMART_RTL - - GUIDED INITIALISING';
const ardusub =
  'STABILIZE ACRO ALT_HOLD AUTO GUIDED - - CIRCLE - SURFACE - - - - - - POSHOLD - - MANUAL MOTOR_DETECT SURFTRAK';
/** ArduPilot Blimp/mode.h; in LAND it only stops its fins. */
const blimp = 'LAND MANUAL VELOCITY LOITER RTL';
const px4_main =
  '- MANUAL ALTCTL POSCTL AUTO ACRO OFFBOARD STABILIZED RATTITUDE SIMPLE TERMINATION ALTITUDE_CRUISE';
/** Names as in the autopilot's sources; ground stations show LOITER as Hold. */
const px4_auto =
  '- READY TAKEOFF LOITER MISSION RTL LAND - FOLLOW PRECLAND VTOL_TAKEOFF EXTERNAL1 EXTERNAL2 EXTERNAL3 EXTERNAL4 EXTERNAL5 EXTERNAL6 EXTERNAL7 EXTERNAL8 GUIDED_COURSE';

const ardupilot_modes: Readonly<Record<Kind, readonly string[]>> = {
  copter: arducopter.split(' '),
  plane: arduplane.split(' '),
  vtol: arduplane.split(' '),
  rover: ardurover.split(' '),
  sub: ardusub.split(' '),
  blimp: blimp.split(' '),
  other: [],
};
const px4_main_modes = px4_main.split(' ');
const px4_auto_modes = px4_auto.split(' ');
const px4_main_auto = 4;
const px4_main_position = 3;
/** Sub-modes of POSCTL. */
const px4_position_modes: readonly string[] = ['POSCTL', 'ORBIT', 'POSITION_SLOW'];

/** PX4 has no guided mode: it flies to a point in its hold mode. */
const px4_auto_sub: Readonly<Record<ModeName, number>> = { GUIDED: 3, AUTO: 4, LOITER: 3, RTL: 5, LAND: 6 };

/** Modes in which a vehicle returns home. */
const homeward: ReadonlySet<string> = new Set(['RTL', 'SMART_RTL', 'QRTL', 'AUTO_RTL']);

/** Returns the name of the mode in a heartbeat; null if the heartbeat has no custom mode. */
export function flightMode(
  autopilot: Autopilot,
  kind: Kind,
  { base_mode, custom_mode, offered }: ModeShown,
): string | null {
  if ((base_mode & base_mode_custom) === 0) return null;
  const known = nameOf(autopilot, kind, custom_mode);
  const own_name = offered?.get(custom_mode);
  if (known === undefined || known === '-') return own_name ?? `UNKNOWN(${custom_mode})`;
  // Only the autopilot's own list names external modes of PX4.
  return known.startsWith('EXTERNAL') ? (own_name ?? known) : known;
}

/** Returns the mode for which the autopilot's own list is needed: one without a name, or AUTOLAND. */
export function modeToList(autopilot: Autopilot, kind: Kind, heartbeat: ModeShown): number | undefined {
  const name = flightMode(autopilot, kind, heartbeat) ?? '';
  if (/^(?:UNKNOWN|EXTERNAL)/u.test(name)) return heartbeat.custom_mode;
  return kind === 'plane' ? arduplane_landing_mode : undefined;
}

interface ModeShown {
  readonly base_mode: number;
  readonly custom_mode: number;
  /** Names by number from the autopilot's list. The tables come first: lists abbreviate, as in `LOIT`. */
  readonly offered?: ReadonlyMap<number, string> | undefined;
}

function nameOf(autopilot: Autopilot, kind: Kind, custom_mode: number): string | undefined {
  if (autopilot === 'ardupilot') return ardupilot_modes[kind][custom_mode];
  if (autopilot !== 'px4') return undefined;
  const main = (custom_mode >>> 16) & 0xff;
  const sub = custom_mode >>> 24;
  if (main === px4_main_position) return px4_position_modes[sub] ?? px4_main_modes[main];
  return main === px4_main_auto ? px4_auto_modes[sub] : px4_main_modes[main];
}

/** Returns the numbers of a mode; undefined if the vehicle has no such mode or its numbers are unknown. */
export function modeNumbers(
  autopilot: Autopilot,
  kind: Kind,
  mode: ModeName,
  offered?: ReadonlyMap<number, string>,
): ModeNumbers | undefined {
  if (autopilot === 'px4') {
    const sub = px4_auto_sub[mode];
    return { main: px4_main_auto, sub, custom_mode: ((sub << 24) | (px4_main_auto << 16)) >>> 0 };
  }
  if (autopilot !== 'ardupilot') return undefined;
  const main = ardupilot_modes[kind].indexOf(mode === 'LAND' ? landing(kind, offered) : mode);
  // Only newer planes have AUTOLAND, and they list it.
  const is_missing = main < 0 || (kind === 'plane' && mode === 'LAND' && offered?.has(main) !== true);
  return is_missing ? undefined : { main, sub: 0, custom_mode: main };
}

/** The modes of the interface that a vehicle of this kind has, or may have: newer planes have AUTOLAND. */
export function modesOf({ autopilot, kind }: { autopilot: Autopilot; kind: Kind }): readonly ModeName[] {
  const isPlane = autopilot === 'ardupilot' && kind === 'plane';
  return mode_names.filter(
    (mode) => modeNumbers(autopilot, kind, mode) !== undefined || (isPlane && mode === 'LAND'),
  );
}

/** Returns the numbers of a mode by the name that ArduPilot gives it on this kind of vehicle. */
function ardupilotMode(kind: Kind, name: string): ModeNumbers {
  const main = ardupilot_modes[kind].indexOf(name);
  return { main, sub: 0, custom_mode: main };
}

/** The mode in which the motors of an ArduRover are off: a boat drifts in it (ArduPilot#10186). */
export const ardurover_hold_mode = ardupilot_modes.rover.indexOf('HOLD');

export const ardusub_surface_mode = ardupilot_modes.sub.indexOf('SURFACE');

/** The mode that an ArduSub changes to without a command when it is at the surface. */
export const ardusub_depth_mode = ardupilot_modes.sub.indexOf('ALT_HOLD');

/** The mode in which an ArduPlane takes off. */
export const arduplane_takeoff_mode = ardupilot_modes.plane.indexOf('TAKEOFF');

/** The autonomous landing mode of ArduPlane; older versions do not have it. */
export const arduplane_landing_mode = ardupilot_modes.plane.indexOf('AUTOLAND');

/** `custom_mode` of PX4 while it takes off. */
export const px4_takeoff_mode = ((2 << 24) | (px4_main_auto << 16)) >>> 0;

/** `custom_mode` of PX4 multicopters while they orbit. */
export const px4_orbit_mode = ((1 << 24) | (px4_main_position << 16)) >>> 0;

/** Quadplanes list both, and reject AUTOLAND. */
function landing(kind: Kind, offered: ReadonlyMap<number, string> | undefined): string {
  if (kind === 'vtol' || (kind === 'plane' && offered?.has(qland))) return 'QLAND';
  return kind === 'plane' ? 'AUTOLAND' : 'LAND';
}

/** Whether it is a mode of PX4 that runs on a companion computer, which may replace one of its own (PX4-Autopilot#20707). */
export function isExternalMode(autopilot: Autopilot, custom_mode: number): boolean {
  return autopilot === 'px4' && nameOf('px4', 'other', custom_mode)?.startsWith('EXTERNAL') === true;
}

/** Whether this mode brings the vehicle home. */
export function isHomeward(mode: string | null): boolean {
  return mode !== null && homeward.has(mode);
}

/** What the vehicle does not keep in that mode. */
export type HoldCaveat = 'drifts' | 'keeps_depth' | 'follows_stick';

export interface HoldMode {
  readonly numbers: ModeNumbers;
  readonly caveat?: HoldCaveat;
}

/** Of a situation, what decides in which mode the vehicle holds. */
interface Held {
  readonly autopilot: Autopilot;
  readonly kind: Kind;
  readonly is_boat: boolean;
  readonly vtol_flight: 'forward' | 'hover' | null;
  readonly position: object | undefined;
  readonly estimator: { readonly hasPosition: boolean } | undefined;
}

interface Named {
  readonly name: string;
  readonly caveat?: HoldCaveat;
}

/** Copters brake: in LOITER their height follows the pilot's throttle stick. Planes circle. */
const hold_modes: Readonly<Record<Exclude<Kind, 'other'>, Named>> = {
  copter: { name: 'BRAKE' },
  plane: { name: 'LOITER' },
  vtol: { name: 'LOITER' },
  rover: { name: 'HOLD' },
  sub: { name: 'POSHOLD' },
  blimp: { name: 'LOITER' },
};
/** A hovering quadplane would accelerate to forward flight for LOITER. */
const hovering: Named = { name: 'QLOITER', caveat: 'follows_stick' };
/** HOLD switches the motors off: on the ground that is what keeps a rover in its place, on the water it is not. */
const boat: Named = { name: 'LOITER' };
const without_position: Readonly<Partial<Record<Kind | 'boat', Named>>> = {
  boat: { name: 'HOLD', caveat: 'drifts' },
  sub: { name: 'ALT_HOLD', caveat: 'keeps_depth' },
  blimp: { name: 'LAND', caveat: 'drifts' },
};

/** Undefined: it has none. */
export function holdMode(held: Held): HoldMode | undefined {
  const { autopilot, kind } = held;
  if (autopilot === 'px4') {
    const numbers = modeNumbers('px4', kind, 'LOITER');
    return numbers && { numbers };
  }
  if (autopilot !== 'ardupilot' || kind === 'other') return undefined;
  const { name, caveat } = holdName(held, kind);
  return { numbers: ardupilotMode(kind, name), ...(caveat === undefined ? {} : { caveat }) };
}

function holdName(held: Held, kind: Exclude<Kind, 'other'>): Named {
  const { is_boat, position, estimator, vtol_flight } = held;
  if (vtol_flight === 'hover') return hovering;
  const hasPosition = position !== undefined && estimator?.hasPosition !== false;
  const usual = is_boat ? boat : hold_modes[kind];
  return hasPosition ? usual : (without_position[is_boat ? 'boat' : kind] ?? usual);
}
