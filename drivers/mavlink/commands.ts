/** The commands of a vehicle: what is sent, and what must be seen before any of them counts as done. */
import { z } from 'zod';
import { latitude, longitude } from '../../src/contract/assets.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand, noInput } from '../../src/driver/command.ts';
import { CommandRefused } from '../../src/errors.ts';
import type { Height } from './altitude.ts';
import type { Contact } from './contact.ts';
import { type Addressee, carryOut, type Order, time_min_ms } from './exchange.ts';
import {
  admitTarget,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
  type Waypoint,
} from './gate.ts';
import { distance_m } from './geo.ts';
import type { Messages } from './messages.ts';
import { flightMode, isHomeward, mode_names, type ModeName, modeNumbers, type ModeNumbers } from './modes.ts';
import type { CommandName, MavlinkOptions } from './options.ts';
import { isArmed, type Situation } from './situation.ts';

/** The vehicle behind the commands. */
export interface Commanded {
  /** Who is spoken to now, and what is known of it; or why nobody can be spoken to. */
  readonly address: () =>
    | { readonly to: Addressee; readonly situation: Situation }
    | { readonly obstacle: string };
}

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

/** The commands that are enabled for this vehicle. */
export function vehicleCommands(
  vehicle: Commanded,
  options: MavlinkOptions,
  enabled: readonly CommandName[],
): readonly Command[] {
  const all = [armCommand(vehicle, options), ...plainCommands(vehicle), gotoCommand(vehicle, options)];
  return all.filter(({ name }) => enabled.some((each) => each === name));
}

function armCommand(vehicle: Commanded, options: MavlinkOptions): Command {
  return defineCommand({
    name: 'arm',
    description: 'Arm the motors. The checks of the autopilot are never bypassed.',
    risk_level: 'high',
    requires_approval: true,
    input: noInput,
    handle: async (_input, context) => {
      const { to } = admit(vehicle, context, (situation) => obstacleToArm(situation, options.arm));
      const evidence = await carryOut(to, armOrder(true), context);
      return { armed: true, ...evidence };
    },
  });
}

function plainCommands(vehicle: Commanded): readonly Command[] {
  const disarm = defineCommand({
    name: 'disarm',
    description: 'Stop the motors of a vehicle that stands on the ground.',
    risk_level: 'medium',
    requires_approval: false,
    safety: true,
    input: noInput,
    handle: async (_input, context) => {
      const { to } = admit(vehicle, context, obstacleToDisarm);
      const evidence = await carryOut(to, armOrder(false), context);
      return { armed: false, ...evidence };
    },
  });
  const return_home = defineCommand({
    name: 'return_home',
    description: 'Return to the launch position and land there, as the autopilot is set up to do.',
    risk_level: 'medium',
    requires_approval: false,
    safety: true,
    input: noInput,
    handle: async (_input, context) => {
      const { to } = admit(vehicle, context, obstacleToReturn);
      const evidence = await carryOut(to, returnOrder(), context);
      return { flight_mode: modeOf(to.contact, Number.NEGATIVE_INFINITY), ...evidence };
    },
  });
  const set_mode = defineCommand({
    name: 'set_mode',
    description: 'Change the flight mode. AUTO starts or resumes the mission.',
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject({ mode: z.enum(mode_names) }),
    handle: async ({ mode }, context) => setMode(vehicle, mode, context),
  });
  return [disarm, return_home, set_mode];
}

async function setMode(vehicle: Commanded, mode: ModeName, context: CommandContext): Promise<JsonObject> {
  const { to, situation } = admit(vehicle, context, (now) => obstacleToMode(now, mode));
  const numbers = modeNumbers(situation.autopilot, situation.kind, mode);
  if (!numbers) throw new CommandRefused(`${to.name} has no mode ${mode}; nothing was done`);
  const evidence = await carryOut(to, modeOrder(mode, numbers, situation), context);
  return { flight_mode: modeOf(to.contact, Number.NEGATIVE_INFINITY), ...evidence };
}

function gotoCommand(vehicle: Commanded, options: MavlinkOptions): Command {
  const { datum, height_min_m, height_max_m } = options.goto;
  const alt_m = z.number().describe(`metres above ${datum_words[datum]}`);
  return defineCommand({
    name: 'goto_waypoint',
    description: `Fly to a point, ${height_min_m} to ${height_max_m} m above home, and wait there. Completed when the vehicle has taken over the target, not when it has arrived.`,
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject({ lat: latitude, lon: longitude, alt_m }),
    handle: async (target, context) => goTo(vehicle, target, { options, context }),
  });
}

const datum_words = {
  relative: 'home',
  amsl: 'mean sea level',
  ellipsoid: 'the WGS-84 ellipsoid',
} as const;

interface GoTo {
  readonly options: MavlinkOptions;
  readonly context: CommandContext;
}

async function goTo(vehicle: Commanded, target: Waypoint, { options, context }: GoTo): Promise<JsonObject> {
  let height: Height | string = 'its height was not worked out';
  const { to, situation } = admit(vehicle, context, (now) => {
    height = admitTarget(target, now, options.goto);
    return typeof height === 'string' ? height : undefined;
  });
  const admitted = height as Height | string;
  if (typeof admitted === 'string') throw new CommandRefused(`${to.name}: ${admitted}; nothing was done`);
  const evidence = await carryOut(to, gotoOrder(target, admitted, situation), context);
  return {
    lat: target.lat,
    lon: target.lon,
    alt_amsl_m: admitted.amsl_m,
    height_above_home_m: admitted.above_home_m,
    alt_datum: options.goto.datum,
    ...evidence,
  };
}

/** Asks everything that must be true before anything is sent. */
function admit(
  vehicle: Commanded,
  context: CommandContext,
  obstacleOf: (situation: Situation) => string | undefined,
): { readonly to: Addressee; readonly situation: Situation } {
  context.signal.throwIfAborted();
  const left_ms = context.remaining_ms();
  if (left_ms < time_min_ms) {
    throw new CommandRefused(
      `too late: ${(left_ms / 1_000).toFixed(1)} s are left, too few to see what the vehicle does; nothing was done`,
    );
  }
  const found = vehicle.address();
  if ('obstacle' in found) throw new CommandRefused(`${found.obstacle}; nothing was done`);
  const obstacle = obstacleOf(found.situation);
  if (obstacle !== undefined) throw new CommandRefused(`${found.to.name}: ${obstacle}; nothing was done`);
  return found;
}

function armOrder(armed: boolean): Order {
  return {
    what: armed ? 'arm' : 'disarm',
    command: command_arm,
    // param2 stays 0: the number that forces it is not in this program.
    send: (contact, confirmation) =>
      sendLong(contact, { command: command_arm, confirmation, param1: armed ? 1 : 0 }),
    may_resend: !armed,
    expected: armed ? 'an armed vehicle' : 'a disarmed vehicle',
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => {
      const heartbeat = heard.since('HEARTBEAT', since_ms);
      return heartbeat !== undefined && isArmed(heartbeat) === armed;
    },
  };
}

function returnOrder(): Order {
  return {
    what: 'return_home',
    command: command_return,
    send: (contact, confirmation) => sendLong(contact, { command: command_return, confirmation }),
    may_resend: true,
    expected: 'a mode that returns home',
    effect_wait_ms,
    isSeen: (contact, since_ms) => isHomeward(modeOf(contact, since_ms)),
  };
}

function modeOrder(
  mode: ModeName,
  { main, sub, custom_mode }: ModeNumbers,
  { autopilot, armed }: Situation,
): Order {
  const base_mode = base_mode_custom | (autopilot === 'px4' && armed ? base_mode_armed : 0);
  return {
    what: `set_mode ${mode}`,
    command: command_set_mode,
    send: (contact, confirmation) =>
      sendLong(contact, {
        command: command_set_mode,
        confirmation,
        param1: base_mode,
        param2: main,
        param3: sub,
      }),
    may_resend: mode === 'RTL' || mode === 'LAND' || mode === 'LOITER',
    expected: `mode ${mode}`,
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => heard.since('HEARTBEAT', since_ms)?.custom_mode === custom_mode,
    fallback: (contact) => contact.send('SET_MODE', { target_system: contact.sysid, base_mode, custom_mode }),
  };
}

/** PX4 reads the altitude as above sea level, whatever the frame says; ArduPilot knows its own home best. */
function gotoOrder({ lat, lon }: Waypoint, height: Height, { autopilot, kind }: Situation): Order {
  const [frame, z_m] =
    autopilot === 'px4' ? [frame_global, height.amsl_m] : [frame_global_relative_int, height.above_home_m];
  const guided = modeNumbers(autopilot, kind, 'GUIDED');
  return {
    what: 'goto_waypoint',
    command: command_reposition,
    send: (contact) =>
      contact.send('COMMAND_INT', {
        target_system: contact.sysid,
        target_component: contact.compid,
        frame,
        command: command_reposition,
        current: 0,
        autocontinue: 0,
        // Default speed, change the mode if needed, no loiter radius, keep the heading.
        param1: -1,
        param2: 1,
        param3: 0,
        param4: Number.NaN,
        x: Math.round(lat * 1e7),
        y: Math.round(lon * 1e7),
        z: z_m,
      }),
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
function modeOf({ autopilot, kind, heard }: Contact, since_ms: number): string | null {
  const heartbeat = heard.since('HEARTBEAT', since_ms);
  return heartbeat ? flightMode(autopilot, kind, heartbeat) : null;
}

type Long = Pick<Messages['COMMAND_LONG'], 'command' | 'confirmation'> & Partial<Messages['COMMAND_LONG']>;

function sendLong(contact: Contact, fields: Long): void {
  const target = { target_system: contact.sysid, target_component: contact.compid };
  const params = { param1: 0, param2: 0, param3: 0, param4: 0, param5: 0, param6: 0, param7: 0 };
  contact.send('COMMAND_LONG', { ...params, ...target, ...fields });
}
