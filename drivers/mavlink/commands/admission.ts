/** Checks before a command is sent: is the vehicle there, is there time, does its situation allow it. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import type { Situation } from '../vehicles/situation.ts';
import { time_min_ms } from './exchange.ts';
import { texts } from './texts.ts';
import type { Addressee, Commanded } from '../vehicles/addressee.ts';

export interface Bounded extends Commanded {
  /** An older task is refused. */
  readonly task_age_max_ms: number;
}

/** `any`: also a vehicle that reports once a minute over a satellite, for commands that make it safer. */
type Reports = 'any' | 'recent';

/** Returns the vehicle if it can be reached and there is time to observe the effect. */
export function reach(
  vehicle: Bounded,
  context: CommandContext,
  reports: Reports = 'recent',
): { readonly to: Addressee; readonly situation: Situation } {
  context.signal.throwIfAborted();
  const left_ms = context.remaining_ms();
  if (left_ms < time_min_ms) throw notSent(texts.time_short((left_ms / 1_000).toFixed(1)));
  // Unknown if the kit's clock was not set; the task runner has already decided whether the task may run then.
  const age_ms = context.age_ms?.() ?? 0;
  // What a restart interrupted was in time, and only commands that change nothing run again.
  if (context.repeated !== true && age_ms > vehicle.task_age_max_ms) {
    throw notSent(texts.task_old((age_ms / 1_000).toFixed(1), vehicle.task_age_max_ms / 1_000));
  }
  const found = vehicle.address();
  if ('obstacle' in found) throw notSent(found.obstacle);
  if (found.situation.is_high_latency && reports === 'recent')
    throw notSent(texts.about(found.to.name, texts.high_latency));
  return found;
}

/** Returns the same if its situation allows the command. */
export function admit(
  vehicle: Bounded,
  context: CommandContext,
  obstacleOf: (situation: Situation) => string | undefined,
  reports?: Reports,
): { readonly to: Addressee; readonly situation: Situation } {
  const found = reach(vehicle, context, reports);
  const obstacle = obstacleOf(found.situation);
  if (obstacle !== undefined) throw notSent(texts.about(found.to.name, obstacle));
  return found;
}

export function notSent(reason: string): CommandRefused {
  return new CommandRefused(texts.not_sent(reason));
}
