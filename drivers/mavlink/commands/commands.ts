/** The commands that most vehicles have: their descriptions for the cloud, and the checks before each of them is sent. */
import { z } from 'zod';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { altitudeInput, shownHeight } from './altitude.ts';
import { admit, admitFlight, type Bounded, notSent, reach } from './admission.ts';
import { arrivalTimeout_ms, awaitArrival, journeyTo } from './arrival.ts';
import { changeMode } from './change-mode.ts';
import { carryOut, spare_ms } from './exchange.ts';
import {
  mustForceDisarm,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
  obstacleToStop,
  type Waypoint,
} from './gate.ts';
import type { Kind } from '../reports/kind.ts';
import { type ModeName, modeNumbers, modesOf } from '../vehicles/modes.ts';
import type { MavlinkOptions } from '../options.ts';
import {
  armOrder,
  disarmOrder,
  gotoOrder,
  modeOrder,
  returnOrder,
  sendCommand,
  stopOrder,
} from './orders.ts';
import { isTargetShown } from './target-shown.ts';
import { type Situation, situationOf } from '../vehicles/situation.ts';
import { modeEffects, texts } from './texts.ts';
import type { Contact } from '../vehicles/contact.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { readParameters } from './parameters.ts';
import type { Addressee } from '../vehicles/addressee.ts';

export function armCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  return defineCommand({
    name: 'arm',
    description: 'Arm the motors. The pre-arm checks of the autopilot are never bypassed.',
    risk_level: 'high',
    requires_approval: true,
    input: noInput,
    handle: async (_input, context) => {
      await refreshChecks(vehicle, context, options.arm);
      const { to } = await admit(vehicle, context, (situation) => obstacleToArm(situation, options.arm));
      const evidence = await carryOut(to, armOrder(), context);
      return { armed: true, ...evidence };
    },
  });
}

/** Nobody types it by mistake. */
const stop_words = 'STOP MOTORS';

export function plainCommands(
  vehicle: Bounded,
  about: Pick<Situation, 'autopilot' | 'kind'>,
): readonly Command[] {
  const disarm = defineCommand({
    name: 'disarm',
    description:
      'Stop the motors of a vehicle on the ground. A multicopter that has lain still on its side or its back for 3 s is on the ground, whatever it reports.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = await admit(vehicle, context, obstacleToDisarm);
      const isForced = mustForceDisarm(situation);
      const evidence = await carryOut(to, disarmOrder({ isForced }), context);
      return { armed: false, ...(isForced ? { forced: true } : {}), ...evidence };
    },
  });
  const return_home = defineCommand({
    name: 'return_home',
    description: 'Return to the launch position and land there, as configured in the autopilot.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = await admit(vehicle, context, obstacleToReturn, 'any');
      return changeMode(to, returnOrder(situation), context);
    },
  });
  const emergency_stop = defineCommand({
    name: 'emergency_stop',
    description: `Stop the motors at once, wherever the vehicle is: one that flies falls. Type ${stop_words} to confirm. Pre-empts other commands.`,
    risk_level: 'high',
    safety: true,
    input: z.strictObject({
      confirm: z
        .string()
        .regex(new RegExp(`^${stop_words}$`, 'u'), `type ${stop_words}`)
        .describe(`type ${stop_words}`)
        .meta({ title: 'Confirm' }),
    }),
    handle: async (_input, context) => {
      const { to } = await admit(vehicle, context, obstacleToStop);
      const evidence = await carryOut(to, stopOrder(), context);
      return { armed: false, ...evidence };
    },
  });
  const effects = modeEffects(about);
  const [first = 'GUIDED', ...others] = modesOf(about);
  const set_mode = defineCommand({
    name: 'set_mode',
    description: `Change the flight mode. ${effects}`,
    risk_level: 'high',
    requires_approval: true,
    safety: ({ mode }) => isSafe(mode),
    input: z.strictObject({
      mode: z
        .enum([first, ...others])
        .describe(effects)
        .meta({ title: 'Flight mode' }),
    }),
    handle: async ({ mode }, context) => setMode(vehicle, mode, context),
  });
  return [disarm, return_home, ...(modesOf(about).length > 0 ? [set_mode] : []), emergency_stop];
}

function isSafe(mode: ModeName): boolean {
  return mode === 'LAND' || mode === 'RTL';
}

async function setMode(vehicle: Bounded, mode: ModeName, context: CommandContext): Promise<JsonObject> {
  const admitted = async () =>
    admit(vehicle, context, (now) => obstacleToMode(now, mode), isSafe(mode) ? 'any' : 'recent');
  const first = await admitted();
  const warning = isLedByStick(first.situation, mode) ? await admitStick(first.to, context) : undefined;
  // Looking at the stick took time.
  const { to, situation } = warning === undefined ? first : await admitted();
  const numbers = modeNumbers(situation.autopilot, situation.kind, mode, situation.modes);
  if (!numbers) throw notSent(texts.mode_unsupported(to.name, mode));
  const changed = await changeMode(to, modeOrder(mode, numbers, situation), context);
  return warning === undefined ? changed : { ...changed, warning };
}

export function gotoCommand(vehicle: Bounded, options: MavlinkOptions, kind: Kind): Command {
  const { height_min_m, height_max_m } = options.goto;
  const alt_m = altitudeInput(options.goto, kind);
  const wait_for_arrival = z
    .boolean()
    .default(false)
    .describe(
      'complete on arrival, with progress until then; otherwise when the vehicle has accepted the target',
    )
    .meta({ title: 'Wait for arrival' });
  return defineCommand({
    name: 'goto_waypoint',
    description: `Fly to a point, ${height_min_m} to ${height_max_m} m above home, and hold there. Completed when the vehicle has accepted the target, or on arrival.`,
    risk_level: 'high',
    requires_approval: true,
    timeoutOf_ms: ({ wait_for_arrival: waits }) => (waits ? arrivalTimeout_ms(options.goto) : undefined),
    input: z.strictObject({ lat: latitude, lon: longitude, alt_m, wait_for_arrival }),
    handle: async (target, context) => goTo(vehicle, target, { options, context }),
  });
}

export interface GoTo {
  readonly options: MavlinkOptions;
  readonly context: CommandContext;
}

export async function goTo(
  vehicle: Bounded,
  target: Waypoint & { readonly wait_for_arrival: boolean },
  { options, context }: GoTo,
): Promise<JsonObject> {
  const flight = { targetOf: () => target, options: options.goto };
  const { to, situation, height } = await admitFlight(vehicle, flight, context);
  const evidence = await carryOut(to, gotoOrder(target, height, situation), context);
  const isGoingAround = !isTargetShown(to.contact, target, height);
  const arrived = target.wait_for_arrival;
  if (arrived) await awaitArrival(to, journeyTo(target, height, situation), context);
  return {
    ...(arrived ? { arrived } : {}),
    lat: target.lat,
    lon: target.lon,
    ...(situation.kind === 'rover' ? {} : shownHeight(height, options.goto.datum)),
    ...(isGoingAround ? { going_around: true } : {}),
    ...evidence,
  };
}

// Lets an ArduPilot run its pre-arm checks when it reports that they fail and has not reported why. Changes nothing on the vehicle.

const command_run_checks = 401;
/** The texts follow at once; the state of the system comes every two seconds. */
const wait_ms = 2_500;
/** Several reasons come one after the other. */
const further_ms = 300;

/**
 * An ArduPilot repeats its reasons every 30 s, and after a change of its mode it reports the result of the earlier one for a
 * second or two. Resolves when it has explained or corrected itself, or has done neither.
 */
async function refreshChecks(
  vehicle: Bounded,
  context: CommandContext,
  options: MavlinkOptions['arm'],
): Promise<void> {
  const { to, situation } = reach(vehicle, context);
  if (!isUnexplained(situation, options)) return;
  const sent_ms = performance.now();
  const how = { form: 'long', confirmation: 0 } as const;
  if (!sendCommand(to.contact, { command: command_run_checks }, how)) return;
  const within_ms = spare_ms(context);
  const look = (): true | undefined => (isAnswered(to.contact, options) ? true : undefined);
  await to.changes.until(look, Math.min(wait_ms, within_ms), context.signal);
  const left_ms = Math.max(0, within_ms - (performance.now() - sent_ms));
  await to.changes.until(() => undefined, Math.min(further_ms, left_ms), context.signal);
}

/** Whether nothing but checks without a reason prevents arming. */
function isUnexplained(situation: Situation, options: MavlinkOptions['arm']): boolean {
  const { autopilot, armed, pre_arm_reasons } = situation;
  if (autopilot !== 'ardupilot' || armed !== false || pre_arm_reasons.length > 0) return false;
  const without = { ...options, require_pre_arm_check: false };
  return obstacleToArm(situation, options) !== undefined && obstacleToArm(situation, without) === undefined;
}

function isAnswered(contact: Contact, options: MavlinkOptions['arm']): boolean {
  return !isUnexplained(situationOf(contact, performance.now()), options);
}

// The throttle stick of a pilot's transmitter. In LOITER the height of an ArduCopter follows it: in the dead zone around its middle
// the copter keeps its height, below it sinks, as far as the ground. The other modes of `set_mode` do not follow it on any vehicle.

/** ArduPilot's own; its parameter names another one. */
const channel_default = 3;
const channel_parameter = 'RCMAP_THROTTLE';
/** The lower end of the dead zone: the middle of 1000 to 2000 less THR_DZ as it is by default. */
const sinks_below_us = 1_400;
/** The longest pulse; more stands for a channel that is not there. */
const pulse_max_us = 2_500;
const fresh_ms = 2_500;
/** The report comes once a second after its request. */
const stick_wait_ms = 2_000;

function isLedByStick({ autopilot, kind, armed, airborne }: Situation, mode: ModeName): boolean {
  return (
    autopilot === 'ardupilot' &&
    kind === 'copter' &&
    mode === 'LOITER' &&
    armed !== false &&
    airborne !== false
  );
}

/** Resolves with the warning for a vehicle that follows the stick. Throws `CommandRefused` when the stick is known to be down. */
async function admitStick(to: Addressee, context: CommandContext): Promise<string> {
  const { contact } = to;
  const within_ms = Math.min(stick_wait_ms, spare_ms(context));
  contact.streams?.requestReport('sticks');
  const [channel] = await Promise.all([
    readChannel(to, { ...context, remaining_ms: () => within_ms }),
    to.changes.until(
      () => contact.latest.fresh('RC_CHANNELS', fresh_ms, performance.now()),
      within_ms,
      context.signal,
    ),
  ]);
  const report = contact.latest.fresh('RC_CHANNELS', fresh_ms, performance.now());
  if (!report) return texts.stick_unknown;
  const pulse_us = new Map(Object.entries(report)).get(`chan${channel}_raw`) ?? 0;
  if (report.chancount === 0 || pulse_us === 0 || pulse_us > pulse_max_us) return texts.no_transmitter;
  if (pulse_us < sinks_below_us) throw notSent(texts.about(to.name, texts.stick_down(channel, pulse_us)));
  return texts.stick_leads(channel, pulse_us);
}

async function readChannel(to: Addressee, context: CommandContext): Promise<number> {
  try {
    const { values } = await readParameters(to, [channel_parameter], context);
    return values.get(channel_parameter) ?? channel_default;
  } catch (error) {
    if (error instanceof CommandRefused) return channel_default;
    throw error;
  }
}
