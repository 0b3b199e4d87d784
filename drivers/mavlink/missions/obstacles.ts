/** Preconditions of commands about missions. */
import { texts as command_texts } from '../commands/texts.ts';
import { untargeted } from '../reports/kind.ts';
import { holdMode } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { texts } from './texts.ts';

/** The reason against a command, or undefined. */
type Obstacle = string | undefined;

/** Modes in which a vehicle follows its mission, by the names of ArduPilot and PX4. */
const mission_modes: ReadonlySet<string> = new Set(['AUTO', 'AUTO_RTL', 'MISSION']);

function isOnMission({ mode }: Situation): boolean {
  return mode !== null && mission_modes.has(mode);
}

/** Altitude frames and modes are known of these only. */
export function obstacleToPlan({ autopilot, kind }: Situation): Obstacle {
  return autopilot === 'other' || untargeted.has(kind) ? texts.kind_unsupported(kind) : undefined;
}

/** What a vehicle follows now must not change under it. */
export function obstacleUnderway(situation: Situation): Obstacle {
  const { armed, airborne } = situation;
  if (armed === null) return command_texts.heartbeat_missing;
  if (!armed) return undefined;
  if (airborne === null) return texts.airborne_unknown;
  return airborne || isOnMission(situation) ? texts.underway : undefined;
}

/** Whether it got underway during an upload. What is not known then, such as after lost heartbeats, ends nothing. */
export function obstacleToContinue(situation: Situation): Obstacle {
  const { armed, airborne } = situation;
  return armed && (airborne === true || isOnMission(situation)) ? texts.underway : undefined;
}

/** A start never arms: PX4 would, if it were asked by the command for it. */
export function obstacleToStart(situation: Situation): Obstacle {
  const { armed, position, estimator } = situation;
  const unsupported = obstacleToPlan(situation);
  if (unsupported !== undefined) return unsupported;
  if (armed === null) return command_texts.heartbeat_missing;
  if (!armed) return command_texts.not_armed;
  if (isOnMission(situation)) return texts.on_mission;
  if (!position) return command_texts.position_missing;
  return estimator?.ok === false ? command_texts.estimator_unhealthy(estimator.reasons) : undefined;
}

export function obstacleToPause(situation: Situation): Obstacle {
  const { armed, kind } = situation;
  if (armed === null) return command_texts.heartbeat_missing;
  if (!holdMode(situation)) return texts.kind_unsupported(kind);
  return armed && isOnMission(situation) ? undefined : texts.not_in_mission;
}

export function obstacleToReposition(situation: Situation): Obstacle {
  if (situation.armed === null) return command_texts.heartbeat_missing;
  return situation.armed && isOnMission(situation) ? undefined : texts.not_in_mission;
}
