/** All commands of a vehicle, as far as they are enabled. */
import type { Command } from '../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../src/platform/errors.ts';
import { notSent } from './commands/admission.ts';
import { armCommand, gotoCommand, plainCommands } from './commands/commands.ts';
import { flightCommands } from './commands/flight-commands.ts';
import { parameterCommands } from './commands/parameters.ts';
import { logCommands } from './logs/commands.ts';
import { orbitCommand } from './commands/orbit.ts';
import { settingCommands } from './commands/settings.ts';
import { texts } from './commands/texts.ts';
import { storageCommands } from './missions/commands.ts';
import { heldToFence } from './missions/fence.ts';
import { missionFlightCommands } from './missions/flight.ts';
import { type CommandName, type MavlinkOptions, safety_names } from './options.ts';
import type { Commanded } from './vehicles/addressee.ts';
import { untargeted } from './reports/kind.ts';
import type { Contact } from './vehicles/contact.ts';

/** Returns the commands that are enabled for this vehicle. */
export function vehicleCommands(
  commanded: Commanded,
  options: MavlinkOptions,
  enabled: readonly CommandName[],
  { autopilot, kind, isTelemetryOnly }: Pick<Contact, 'autopilot' | 'isTelemetryOnly' | 'kind'>,
): readonly Command[] {
  if (isTelemetryOnly) return [];
  const bounded = { ...commanded, task_age_max_ms: options.task_age_max_s * 1_000 };
  const vehicle = { ...bounded, againstFence: heldToFence(bounded) };
  const all = [
    armCommand(vehicle, options),
    ...plainCommands(vehicle, { autopilot, kind }),
    gotoCommand(vehicle, options, kind),
    ...flightCommands(vehicle, options, kind),
    ...orbitCommand(vehicle, options, { autopilot, kind }),
    ...storageCommands(vehicle, options),
    ...missionFlightCommands(vehicle, options, kind),
    ...settingCommands(vehicle, options, { autopilot, kind }),
    ...parameterCommands(vehicle),
    ...logCommands(vehicle),
  ];
  const lacks = lackedBy({ autopilot, kind });
  return all
    .filter(({ name }) => !lacks.has(name) && enabled.some((each) => each === name))
    .map((command) => unlessShared(command, commanded));
}

/**
 * Another vehicle may receive what is sent to this one: that is refused, except for what makes both safer. Where they have one
 * address, either one may have shown its effect.
 */
function unlessShared(command: Command, { conflict, mixture }: Commanded): Command {
  const read: Command['read'] = (payload) => {
    const { run, ...read } = command.read(payload);
    const is_safety = read.is_safety || safety_names.has(command.name);
    // It makes no vehicle safer for which it is not meant.
    const isForBoth = is_safety && command.name !== 'emergency_stop';
    const runKnowing: typeof run = async (context) => {
      const obstacle = isForBoth ? undefined : conflict();
      if (obstacle !== undefined) throw notSent(obstacle);
      const result = await run(context);
      const doubt = mixture();
      if (doubt !== undefined) throw new CommandRefused(texts.unknown_outcome(doubt));
      return result;
    };
    return { ...read, is_safety, run: runKnowing };
  };
  return { ...command, read };
}

const airborne_only: readonly CommandName[] = ['takeoff', 'land', 'set_altitude'];
const targets: readonly CommandName[] = ['goto_waypoint', 'reposition', 'set_altitude', 'set_speed'];
const missions: readonly CommandName[] = ['upload_mission', 'start_mission', 'resume_mission'];
const modes: readonly CommandName[] = ['hold', 'land', 'pause_mission'];

/**
 * What a vehicle of this kind can never carry out. Of one whose modes and altitude frames are not known, as of a generic autopilot
 * or a balloon, what brings it home and stops its motors stays: MAVLink defines that for all.
 */
function lackedBy({ autopilot, kind }: Pick<Contact, 'autopilot' | 'kind'>): ReadonlySet<string> {
  const isKnown = areModesKnown({ autopilot, kind });
  const is_ardusub = autopilot === 'ardupilot' && kind === 'sub';
  const names: readonly CommandName[] = [
    ...(is_ardusub ? (['return_home'] as const) : (['surface'] as const)),
    ...(kind === 'rover' || kind === 'sub' ? airborne_only : []),
    ...(isKnown && !untargeted.has(kind) ? [] : [...targets, ...missions]),
    // It accepts a takeoff and does nothing, and has no mode for missions.
    ...(kind === 'blimp' ? (['takeoff', 'pause_mission'] as const) : []),
    ...(isKnown ? [] : [...airborne_only, ...modes]),
    ...(autopilot === 'other' ? (['download_log'] as const) : []),
  ];
  return new Set(names);
}

function areModesKnown({ autopilot, kind }: Pick<Contact, 'autopilot' | 'kind'>): boolean {
  return autopilot !== 'other' && kind !== 'other' && (kind !== 'blimp' || autopilot === 'ardupilot');
}
