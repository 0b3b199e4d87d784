/** The command `download_log`: lists the logs of a vehicle, or begins to transfer one to the kit. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { type Bounded, notSent, reach } from '../commands/admission.ts';
import type { LogEntry } from '../vehicles/addressee.ts';
import { endReading, listLogs } from './log-messages.ts';
import { texts } from './texts.ts';
import { newestOf } from './vehicle-logs.ts';

const list_timeout_ms = 120_000;
/** More would not fit the report of a task. */
const listed_max = 200;
const id_max = 65_535;

export function logCommands(vehicle: Bounded): readonly Command[] {
  const id = z
    .int()
    .min(0)
    .max(id_max)
    .optional()
    .describe('number of the log; the newest when omitted')
    .meta({ title: 'Log' });
  const list = z
    .boolean()
    .default(false)
    .describe('only list the logs that the vehicle has')
    .meta({ title: 'List only' });
  return [
    defineCommand({
      name: 'download_log',
      description:
        'Transfer a flight log to the kit, and from there to the cloud, or list the logs. The vehicle must be disarmed. Completed when the transfer has begun: it goes on by itself, pauses while the vehicle is armed or lost, and the log appears among the files.',
      risk_level: 'low',
      requires_approval: false,
      repeatable: true,
      timeout_ms: list_timeout_ms,
      input: z.strictObject({ id, list }),
      handle: async (input, context) => download(vehicle, input, context),
    }),
  ];
}

async function download(
  vehicle: Bounded,
  { id, list }: { readonly id?: number | undefined; readonly list: boolean },
  context: CommandContext,
): Promise<JsonObject> {
  const { to, situation } = reach(vehicle, context);
  if (situation.armed !== false) throw notSent(texts.armed);
  const { progress } = vehicle.logs;
  if (progress !== undefined) throw notSent(progress);
  const logs = await listLogs(to, context.signal);
  endReading(to);
  context.signal.throwIfAborted();
  if (!logs) throw new CommandRefused(texts.no_answer(to.name));
  if (list) return { count: logs.length, logs: logs.slice(-listed_max).toReversed().map(shownOf) };
  const log = id === undefined ? newestOf(logs, to) : logs.find((each) => each.id === id);
  if (!log)
    throw new CommandRefused(id === undefined ? texts.no_logs(to.name) : texts.no_such_log(to.name, id));
  vehicle.logs.begin(log);
  return { ...shownOf(log), state: 'transferring' };
}

function shownOf({ id, bytes, time_utc }: LogEntry): JsonObject {
  return { id, bytes, at: time_utc === 0 ? null : new Date(time_utc * 1_000).toISOString() };
}
