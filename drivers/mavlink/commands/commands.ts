/** The commands of a vehicle: their descriptions for the cloud, and the checks before each of them is sent. */
import { z } from 'zod';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand, noInput } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import { type Addressee, carryOut, time_min_ms } from './exchange.ts';
import {
  admitTarget,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
  type Waypoint,
} from './gate.ts';
import { mode_names, type ModeName, modeNumbers } from '../vehicles/modes.ts';
import type { CommandName, MavlinkOptions } from '../options.ts';
import { armOrder, gotoOrder, modeOf, modeOrder, returnOrder } from './orders.ts';
import type { Situation } from '../vehicles/situation.ts';
import { texts } from './texts.ts';

/** The vehicle that the commands control. */
export interface Commanded {
  /** Returns the addressed autopilot and its situation, or why the vehicle cannot be reached. */
  readonly address: () =>
    | { readonly to: Addressee; readonly situation: Situation }
    | { readonly obstacle: string };
}

interface Bounded extends Commanded {
  /** An older task is refused. */
  readonly task_age_max_ms: number;
}

/** Returns the commands that are enabled for this vehicle. */
export function vehicleCommands(
  commanded: Commanded,
  options: MavlinkOptions,
  enabled: readonly CommandName[],
  { autopilot, kind }: Pick<Situation, 'autopilot' | 'kind'>,
): readonly Command[] {
  const vehicle = { ...commanded, task_age_max_ms: options.task_age_max_s * 1_000 };
  const all = [armCommand(vehicle, options), ...plainCommands(vehicle), gotoCommand(vehicle, options)];
  // ArduSub has no mode that returns home.
  const is_ardusub = autopilot === 'ardupilot' && kind === 'sub';
  const has = (name: string): boolean => !is_ardusub || name !== 'return_home';
  return all.filter(({ name }) => has(name) && enabled.some((each) => each === name));
}

function armCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  return defineCommand({
    name: 'arm',
    description: 'Arm the motors. The pre-arm checks of the autopilot are never bypassed.',
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
    description: 'Stop the motors of a vehicle on the ground.',
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
    description: 'Return to the launch position and land there, as configured in the autopilot.',
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
  if (!numbers) throw notSent(texts.mode_unsupported(to.name, mode));
  const evidence = await carryOut(to, modeOrder(mode, numbers, situation), context);
  return { flight_mode: modeOf(to.contact), ...evidence };
}

function gotoCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  const { datum, height_min_m, height_max_m } = options.goto;
  const alt_m = z.number().describe(`metres above ${datum_names[datum]}`);
  return defineCommand({
    name: 'goto_waypoint',
    description: `Fly to a point, ${height_min_m} to ${height_max_m} m above home, and hold there. Completed when the vehicle has accepted the target, not when it has arrived.`,
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject({ lat: latitude, lon: longitude, alt_m }),
    handle: async (target, context) => goTo(vehicle, target, { options, context }),
  });
}

const datum_names = {
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
  if (typeof height === 'string') throw notSent(texts.about(to.name, height));
  const evidence = await carryOut(to, gotoOrder(target, height, situation), context);
  return {
    lat: target.lat,
    lon: target.lon,
    ...(situation.kind === 'rover'
      ? {}
      : {
          alt_amsl_m: height.amsl_m,
          height_above_home_m: height.above_home_m,
          alt_datum: options.goto.datum,
        }),
    ...evidence,
  };
}

/** Returns the vehicle if it can be reached and there is time to observe the effect. */
function reach(
  vehicle: Bounded,
  context: CommandContext,
): { readonly to: Addressee; readonly situation: Situation } {
  context.signal.throwIfAborted();
  const left_ms = context.remaining_ms();
  if (left_ms < time_min_ms) throw notSent(texts.time_short((left_ms / 1_000).toFixed(1)));
  // Unknown if the kit's clock was not set; the task runner has already decided whether the task may run then.
  const age_ms = context.age_ms?.() ?? 0;
  if (age_ms > vehicle.task_age_max_ms) {
    throw notSent(texts.task_old((age_ms / 1_000).toFixed(1), vehicle.task_age_max_ms / 1_000));
  }
  const found = vehicle.address();
  if ('obstacle' in found) throw notSent(found.obstacle);
  return found;
}

/** Returns the same if its situation allows the command. */
function admit(
  vehicle: Bounded,
  context: CommandContext,
  obstacleOf: (situation: Situation) => string | undefined,
): { readonly to: Addressee; readonly situation: Situation } {
  const found = reach(vehicle, context);
  const obstacle = obstacleOf(found.situation);
  if (obstacle !== undefined) throw notSent(texts.about(found.to.name, obstacle));
  return found;
}

function notSent(reason: string): CommandRefused {
  return new CommandRefused(texts.not_sent(reason));
}
