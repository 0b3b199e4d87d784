/** Lets an ArduPilot run its pre-arm checks when it reports that they fail and has not reported why. Changes nothing on the vehicle. */
import type { CommandContext } from '../../../src/driver/command.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Contact } from '../vehicles/contact.ts';
import { type Situation, situationOf } from '../vehicles/situation.ts';
import { type Bounded, reach } from './admission.ts';
import { report_reserve_ms, time_min_ms } from './exchange.ts';
import { obstacleToArm } from './gate.ts';
import { sendCommand } from './orders.ts';

const command_run_checks = 401;
/** The texts follow at once; the state of the system comes every two seconds. */
const wait_ms = 2_500;
/** Several reasons come one after the other. */
const further_ms = 300;

/**
 * An ArduPilot repeats its reasons every 30 s, and after a change of its mode it reports the result of the earlier one for a
 * second or two. Resolves when it has explained or corrected itself, or has done neither.
 */
export async function refreshChecks(
  vehicle: Bounded,
  context: CommandContext,
  options: MavlinkOptions['arm'],
): Promise<void> {
  const { to, situation } = reach(vehicle, context);
  if (!isUnexplained(situation, options)) return;
  const sent_ms = performance.now();
  const how = { form: 'long', confirmation: 0 } as const;
  if (!sendCommand(to.contact, { command: command_run_checks }, how)) return;
  const spare_ms = Math.max(0, context.remaining_ms() - time_min_ms - report_reserve_ms);
  const look = (): true | undefined => (isAnswered(to.contact, options) ? true : undefined);
  await to.changes.until(look, Math.min(wait_ms, spare_ms), context.signal);
  const left_ms = Math.max(0, spare_ms - (performance.now() - sent_ms));
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
