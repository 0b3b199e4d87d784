/** The command `snapshot` of cameras that give pictures. */
import type { JsonObject } from '../../contract/json.ts';
import { type Command, defineCommand, noInput } from '../../driver/command.ts';
import { CommandRefused, notSent } from '../../errors.ts';
import { texts } from '../texts.ts';

/** `take` resolves with the result of the task once the picture is kept. It may be repeated: a picture changes nothing. */
export function snapshotCommand(timeout_ms: number, take: () => Promise<JsonObject>): Command {
  return defineCommand({
    name: 'snapshot',
    description: texts.snapshot_command,
    risk_level: 'low',
    timeout_ms,
    repeatable: true,
    input: noInput,
    handle: async (_, { signal }) => {
      if (signal.aborted) throw new CommandRefused(notSent('cancelled'));
      return take();
    },
  });
}
