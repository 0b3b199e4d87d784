/** The commands of a vehicle: what the cloud is told of them, and what is asked before any of them is carried out. */
import { z } from 'zod';
import { latitude, longitude } from '../../src/contract/assets.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand, noInput } from '../../src/driver/command.ts';
import { CommandRefused } from '../../src/errors.ts';
import { type Addressee, carryOut, time_min_ms } from './exchange.ts';
import {
  admitTarget,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
  type Waypoint,
} from './gate.ts';
import { mode_names, type ModeName, modeNumbers } from './modes.ts';
import type { CommandName, MavlinkOptions } from './options.ts';
import { armOrder, gotoOrder, modeOf, modeOrder, returnOrder } from './orders.ts';
import type { Situation } from './situation.ts';

/** The vehicle behind the commands. */
export interface Commanded {
  /** Who is spoken to now, and what is known of it; or why nobody can be spoken to. */
  readonly address: () =>
    | { readonly to: Addressee; readonly situation: Situation }
    | { readonly obstacle: string };
}

interface Bounded extends Commanded {
  /** A task that was created longer ago is not carried out. */
  readonly task_age_max_ms: number;
}

/** The commands that are enabled for this vehicle. */
export function vehicleCommands(
  commanded: Commanded,
  options: MavlinkOptions,
  enabled: readonly CommandName[],
): readonly Command[] {
  const vehicle = { ...commanded, task_age_max_ms: options.task_age_max_s * 1_000 };
  const all = [armCommand(vehicle, options), ...plainCommands(vehicle), gotoCommand(vehicle, options)];
  return all.filter(({ name }) => enabled.some((each) => each === name));
}

function armCommand(vehicle: Bounded, options: MavlinkOptions): Command {
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

function plainCommands(vehicle: Bounded): readonly Command[] {
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
      return { flight_mode: modeOf(to.contact), ...evidence };
    },
  });
  const set_mode = defineCommand({
    name: 'set_mode',
    description: 'Change the flight mode. AUTO starts or resumes the mission.',
    risk_level: 'high',
    requires_approval: true,
    safety: ({ mode }) => mode === 'LAND' || mode === 'RTL',
    input: z.strictObject({ mode: z.enum(mode_names) }),
    handle: async ({ mode }, context) => setMode(vehicle, mode, context),
  });
  return [disarm, return_home, set_mode];
}

async function setMode(vehicle: Bounded, mode: ModeName, context: CommandContext): Promise<JsonObject> {
  const { to, situation } = admit(vehicle, context, (now) => obstacleToMode(now, mode));
  const numbers = modeNumbers(situation.autopilot, situation.kind, mode, situation.modes);
  if (!numbers) throw nothingDone(`${to.name} has no mode ${mode}`);
  const evidence = await carryOut(to, modeOrder(mode, numbers, situation), context);
  return { flight_mode: modeOf(to.contact), ...evidence };
}

function gotoCommand(vehicle: Bounded, options: MavlinkOptions): Command {
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

async function goTo(vehicle: Bounded, target: Waypoint, { options, context }: GoTo): Promise<JsonObject> {
  const { to, situation } = reach(vehicle, context);
  const height = admitTarget(target, situation, options.goto);
  if (typeof height === 'string') throw nothingDone(`${to.name}: ${height}`);
  const evidence = await carryOut(to, gotoOrder(target, height, situation), context);
  return {
    lat: target.lat,
    lon: target.lon,
    alt_amsl_m: height.amsl_m,
    height_above_home_m: height.above_home_m,
    alt_datum: options.goto.datum,
    ...evidence,
  };
}

/** The vehicle, if it can be spoken to and there is time to see what it does. */
function reach(
  vehicle: Bounded,
  context: CommandContext,
): { readonly to: Addressee; readonly situation: Situation } {
  context.signal.throwIfAborted();
  const left_ms = context.remaining_ms();
  if (left_ms < time_min_ms) {
    const left = `${(left_ms / 1_000).toFixed(1)} s are left`;
    throw nothingDone(`too late: ${left}, too few to see what the vehicle does`);
  }
  // Unknown where the kit's clock was not set; the task runner has decided what may run then.
  const age_ms = context.age_ms?.() ?? 0;
  if (age_ms > vehicle.task_age_max_ms) {
    const allowed = `${vehicle.task_age_max_ms / 1_000} s are allowed (task_age_max_s)`;
    throw nothingDone(`too late: the task was created ${(age_ms / 1_000).toFixed(1)} s ago, and ${allowed}`);
  }
  const found = vehicle.address();
  if ('obstacle' in found) throw nothingDone(found.obstacle);
  return found;
}

/** The same, if nothing that is known of it speaks against the command. */
function admit(
  vehicle: Bounded,
  context: CommandContext,
  obstacleOf: (situation: Situation) => string | undefined,
): { readonly to: Addressee; readonly situation: Situation } {
  const found = reach(vehicle, context);
  const obstacle = obstacleOf(found.situation);
  if (obstacle !== undefined) throw nothingDone(`${found.to.name}: ${obstacle}`);
  return found;
}

function nothingDone(sentence: string): CommandRefused {
  return new CommandRefused(`${sentence}; nothing was done`);
}
