/** Commands of a vehicle about its mission. */
import { type Command, defineCommand, noInput } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import { type Bounded, reach } from '../commands/admission.ts';
import { texts as command_texts } from '../commands/texts.ts';
import { downloadMission } from './download.ts';
import { planOf } from './plan.ts';

/** 700 items at 20 % loss, or a long mission over a slow radio. */
const download_timeout_ms = 120_000;

export function missionCommands(vehicle: Bounded): readonly Command[] {
  const download_mission = defineCommand({
    name: 'download_mission',
    description:
      'Read the mission of the vehicle, as a plan of QGroundControl. Changes nothing on the vehicle.',
    risk_level: 'low',
    requires_approval: false,
    repeatable: true,
    timeout_ms: download_timeout_ms,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = reach(vehicle, context);
      const items = await downloadMission(to, context);
      const { autopilot, home } = situation;
      const vehicle_type = to.contact.latest.last('HEARTBEAT')?.type ?? 0;
      const plan = planOf(items, { autopilot, home, vehicle_type });
      if (!plan) throw new CommandRefused(command_texts.about(to.name, command_texts.home_unknown));
      return { items: items.length, plan };
    },
  });
  return [download_mission];
}
