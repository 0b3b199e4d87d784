/** Commands that change what a vehicle has set: its home, its heading, the height of its return, its fence. */
import { z } from 'zod';
import { altitude_m, latitude, longitude } from '../../../src/contract/assets.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Kind } from '../reports/kind.ts';
import type { Contact } from '../vehicles/contact.ts';
import { distance_m, type Place } from '../vehicles/geo.ts';
import { isHomeward, modeNumbers } from '../vehicles/modes.ts';
import { geofence_bit, isFenceEnabled, type Situation, situationOf } from '../vehicles/situation.ts';
import { admit, type Bounded, notSent } from './admission.ts';
import { carryOut } from './exchange.ts';
import { obstacleToFly, outOfFence, tooFar } from './gate.ts';
import { reposition, sendCommand } from './orders.ts';
import { readSome, valueOf, writeParameter } from './parameters.ts';
import { texts as parameter_texts } from './parameter-texts.ts';
import { texts } from './texts.ts';
import type { Order } from './ways.ts';

const command_set_home = 179;
const command_yaw = 115;
const command_reposition = 192;
const command_fence = 207;
const frame_global = 0;
const home_tolerance_m = 2;
/** Home is reported when it changes, and every five seconds. */
const home_wait_ms = 8_000;
/** A slow vehicle turns by 20 degrees a second. */
const turn_wait_ms = 12_000;
const turn_timeout_ms = 20_000;
const heading_tolerance_deg = 5;
const degrees_max = 360;
/** The state of its sensors is reported every two seconds. */
const fence_wait_ms = 6_000;
const fence_settle_ms = 2_500;
const parameter_wait_ms = 4_000;
const return_min_m = 2;

type About = Pick<Situation, 'autopilot' | 'kind'>;

/** Returns those that this vehicle can carry out. */
export function settingCommands(
  vehicle: Bounded,
  options: MavlinkOptions,
  { autopilot, kind }: About,
): readonly Command[] {
  if (autopilot === 'other' || kind === 'other' || kind === 'blimp') return [];
  return [
    homeCommand(vehicle, options),
    ...(kind === 'copter' ? [headingCommand(vehicle)] : []),
    ...(returnParameters({ autopilot, kind }).length > 0 ? [returnCommand(vehicle, options)] : []),
    ...(autopilot === 'ardupilot' ? [fenceCommand(vehicle)] : []),
  ];
}

function homeCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  const place = {
    lat: latitude.optional().describe('where the vehicle is when omitted'),
    lon: longitude.optional().describe('where the vehicle is when omitted'),
    alt_amsl_m: altitude_m
      .optional()
      .describe('metres above mean sea level; of a place without it: those of the present home')
      .meta({ title: 'Altitude', 'x-kit-datum': 'amsl', 'x-kit-unit': 'm' }),
  };
  return defineCommand({
    name: 'set_home',
    description:
      'Set the place that the vehicle returns to, and that heights above home count from: where it is, or at lat and lon. Completed when the vehicle reports it.',
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject(place),
    handle: async (input, context) => setHome(vehicle, input, { options, context }),
  });
}

interface HomeWanted {
  readonly lat?: number | undefined;
  readonly lon?: number | undefined;
  readonly alt_amsl_m?: number | undefined;
}

async function setHome(
  vehicle: Bounded,
  wanted: HomeWanted,
  { options, context }: { readonly options: MavlinkOptions; readonly context: CommandContext },
): Promise<JsonObject> {
  const { to, situation } = await admit(vehicle, context, (now) => obstacleToHome(now, wanted, options));
  const at = placeOf(wanted, situation);
  const evidence = await carryOut(to, homeOrder(at, situation), context);
  const { home } = situationOf(to.contact, performance.now());
  return { lat: at.lat, lon: at.lon, alt_amsl_m: at.z_m, ...home, ...evidence };
}

function placeOf({ lat, lon, alt_amsl_m }: HomeWanted, { position, home, kind }: Situation): HomeAt {
  const { alt_amsl_m: here_m, ...here } = position ?? { lat: 0, lon: 0, alt_amsl_m: 0 };
  if (lat === undefined || lon === undefined) return { ...here, z_m: here_m };
  // The altitude of the home of a rover may be nonsense.
  const usual_m = (kind === 'rover' ? undefined : home?.alt_amsl_m) ?? here_m;
  return { lat, lon, z_m: alt_amsl_m ?? usual_m };
}

function obstacleToHome(
  { position, mode }: Situation,
  { lat, lon, alt_amsl_m }: HomeWanted,
  { goto: limits }: MavlinkOptions,
): string | undefined {
  if (lat === undefined || lon === undefined) {
    if (lat !== lon || alt_amsl_m !== undefined) return texts.home_incomplete;
  } else if (lat === 0 && lon === 0) return texts.target_unset;
  if (!position) return texts.position_missing;
  if (isHomeward(mode)) return texts.on_way_home;
  if (lat === undefined || lon === undefined) return undefined;
  const place = { lat, lon };
  return tooFar(place, position, 'the vehicle', limits) ?? outOfFence(place, place, limits);
}

interface HomeAt extends Place {
  readonly z_m: number;
}

/** By its coordinates in any case: a further copy, while the vehicle moves, must not set another place. */
function homeOrder(at: HomeAt, { kind }: Situation): Order {
  const fields = { command: command_set_home, place: { ...at, frame: frame_global } };
  return {
    what: 'set_home',
    command: command_set_home,
    forms: ['int', 'long'],
    send: (contact, how) => sendCommand(contact, fields, how),
    may_resend: false,
    expected: texts.expects_home,
    effect_wait_ms: home_wait_ms,
    shown_in: 'HOME_POSITION',
    isObserved: ({ latest }, since_ms) => {
      const home = latest.since('HOME_POSITION', since_ms);
      if (!home) return false;
      const off_m = distance_m({ lat: home.latitude / 1e7, lon: home.longitude / 1e7 }, at);
      const isLevel = kind === 'rover' || Math.abs(home.altitude / 1_000 - at.z_m) <= home_tolerance_m;
      return off_m <= home_tolerance_m && isLevel;
    },
  };
}

function headingCommand(vehicle: Bounded): Command {
  const heading_deg = z
    .number()
    .min(0)
    .max(degrees_max)
    .describe('degrees from north, clockwise')
    .meta({ title: 'Heading', 'x-kit-unit': '°' });
  return defineCommand({
    name: 'set_heading',
    description:
      'Turn to a heading where it is; a PX4 stops for it, an ArduCopter must be in GUIDED. Completed at that heading.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: turn_timeout_ms,
    input: z.strictObject({ heading_deg }),
    handle: async (input, context) => {
      const { to, situation } = await admit(vehicle, context, obstacleToTurn);
      const evidence = await carryOut(to, headingOrder(input.heading_deg, situation), context);
      return { heading_deg: input.heading_deg, ...evidence };
    },
  });
}

function obstacleToTurn(situation: Situation): string | undefined {
  const { autopilot, mode } = situation;
  return (
    obstacleToFly(situation) ?? (autopilot === 'ardupilot' && mode !== 'GUIDED' ? texts.turn_mode : undefined)
  );
}

function headingOrder(heading_deg: number, { autopilot, kind }: Situation): Order {
  const here = { lat: Number.NaN, lon: Number.NaN, z_m: Number.NaN, frame: frame_global };
  const px4_mode = modeNumbers('px4', kind, 'GUIDED')?.custom_mode;
  const is_px4 = autopilot === 'px4';
  return {
    what: 'set_heading',
    command: is_px4 ? command_reposition : command_yaw,
    forms: ['long'],
    send: (contact, how) => {
      // Of PX4 in radians: it takes the number as the yaw of its setpoint (navigator_main.cpp), as QGroundControl sends it.
      const param4 = (heading_deg * Math.PI) / 180;
      const px4 = { command: command_reposition, ...reposition, param4, place: here };
      return sendCommand(contact, is_px4 ? px4 : { command: command_yaw, param1: heading_deg }, how);
    },
    may_resend: false,
    expected: texts.expects_heading,
    effect_wait_ms: turn_wait_ms,
    shown_in: 'ATTITUDE',
    isObserved: ({ latest }, since_ms) => {
      const attitude = latest.since('ATTITUDE', since_ms);
      const mode = latest.since('HEARTBEAT', since_ms)?.custom_mode;
      if (!attitude || (is_px4 && mode !== px4_mode)) return false;
      const off_deg = Math.abs((attitude.yaw * 180) / Math.PI - heading_deg) % degrees_max;
      return Math.min(off_deg, degrees_max - off_deg) <= heading_tolerance_deg;
    },
  };
}

interface ReturnParameter {
  readonly name: string;
  /** In one metre. */
  readonly units: number;
}

/** Newest name first: the vehicle answers for one of them (ArduCopter 4.7, ArduPlane 4.5). A quadplane has two heights, by Q_RTL_MODE. */
function returnParameters({ autopilot, kind }: About): readonly ReturnParameter[] {
  const flies = kind === 'copter' || kind === 'plane' || kind === 'vtol';
  if (autopilot === 'px4') return flies ? [{ name: 'RTL_RETURN_ALT', units: 1 }] : [];
  if (autopilot !== 'ardupilot') return [];
  return ardupilot_returns[kind] ?? [];
}

const ardupilot_returns: Readonly<Partial<Record<Kind, readonly ReturnParameter[]>>> = {
  copter: [
    { name: 'RTL_ALT_M', units: 1 },
    { name: 'RTL_ALT', units: 100 },
  ],
  plane: [
    { name: 'RTL_ALTITUDE', units: 1 },
    { name: 'ALT_HOLD_RTL', units: 100 },
  ],
};

function returnCommand(vehicle: Bounded, { goto: { height_min_m, height_max_m } }: MavlinkOptions): Command {
  const height_m = z
    .number()
    .min(Math.max(return_min_m, height_min_m))
    .max(Math.max(return_min_m, height_max_m))
    .describe('metres above home')
    .meta({ title: 'Height', 'x-kit-datum': 'relative', 'x-kit-unit': 'm' });
  return defineCommand({
    name: 'change_return_altitude',
    description:
      'Change the height at which the vehicle returns home, a parameter that it keeps. Completed when the vehicle reports the new value.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: turn_timeout_ms,
    input: z.strictObject({ height_m }),
    handle: async (input, context) => changeReturn(vehicle, input.height_m, context),
  });
}

async function changeReturn(
  vehicle: Bounded,
  height_m: number,
  context: CommandContext,
): Promise<JsonObject> {
  const { to, situation } = await admit(vehicle, context, ({ armed, mode }) =>
    armed === true && isHomeward(mode) ? texts.on_way_home : undefined,
  );
  const known = returnParameters(situation);
  const names = known.map(({ name }) => name);
  const found = await readSome(to, names, { context, wait_ms: parameter_wait_ms, enough: 1 });
  const parameter = known.find(({ name }) => found.has(name));
  const stored = parameter && found.get(parameter.name);
  if (!parameter || !stored)
    throw notSent(parameter_texts.none_answered(to.name, names.join(', '), parameter_wait_ms / 500));
  const { name, units } = parameter;
  const before = valueOf(stored, to.contact.autopilot);
  const held = await writeParameter(to, stored, height_m * units, context);
  if (held === undefined)
    throw new CommandRefused(texts.unknown_outcome(parameter_texts.unwritten(to.name, name)));
  if (held === null || Math.abs(held / units - height_m) > 1 / units)
    throw new CommandRefused(parameter_texts.kept_other(to.name, name, { sent: height_m * units, held }));
  return {
    height_m: held / units,
    parameter: name,
    ...(before === null ? {} : { before_m: before / units }),
  };
}

function fenceCommand(vehicle: Bounded): Command {
  return defineCommand({
    name: 'enable_fence',
    description:
      'Let the vehicle enforce its fence: the areas that are stored, and its limits of height and distance from home. Its parameters decide what it does at the fence (FENCE_ACTION). Completed when the vehicle reports it.',
    risk_level: 'high',
    requires_approval: true,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = await admit(vehicle, context, ({ armed }) =>
        armed === null ? texts.heartbeat_missing : undefined,
      );
      const outside =
        situation.position && (await vehicle.againstFence?.({ to: situation.position }, context));
      if (outside !== undefined) throw notSent(texts.about(to.name, texts.breached_at_once(outside)));
      const evidence = await carryOut(to, fenceOrder(), context);
      return { enabled: true, ...evidence };
    },
  });
}

function fenceOrder(): Order {
  return {
    what: 'enable_fence',
    command: command_fence,
    forms: ['long', 'int'],
    send: (contact, how) => sendCommand(contact, { command: command_fence, param1: 1 }, how),
    may_resend: false,
    expected: texts.expects_fence,
    effect_wait_ms: fence_wait_ms,
    shown_in: 'SYS_STATUS',
    causes: ({ latest }) => {
      const present = latest.last('SYS_STATUS')?.onboard_control_sensors_present ?? geofence_bit;
      return (present & geofence_bit) === 0 ? [texts.fence_missing] : [];
    },
    // FENCE_STATUS is sent by a vehicle with an enabled fence only; one that only reports breaches sets no bit.
    isObserved: (contact: Contact, since_ms) =>
      isFenceEnabled(contact, since_ms) ||
      contact.latest.since('FENCE_STATUS', since_ms + fence_settle_ms) !== undefined,
  };
}
