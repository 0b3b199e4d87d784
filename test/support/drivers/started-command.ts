/** A command as the task runner starts it, whose end the test decides. */
import type { Command, CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';

interface Start {
  readonly payload?: object;
  /** A restart of the connector interrupted an earlier run. */
  readonly repeated?: boolean;
}

/** Starts `command`; throws when the driver does not offer it. */
export function startCommand(command: Command | undefined, { payload = {}, repeated = false }: Start = {}) {
  if (!command) throw new Error('the command is not offered');
  const ending = new AbortController();
  const notes: string[] = [];
  const context: CommandContext = {
    signal: ending.signal,
    progress: (message) => void notes.push(message),
    remaining_ms: () => 60_000,
    repeated,
  };
  const done = command.read(payload).run(context);
  done.catch(() => undefined);
  return {
    done,
    /** Messages of its progress. */
    notes,
    /** Its deadline passes, or the connector stops. */
    stop: () => ending.abort(new CommandRefused('the task was stopped')),
  };
}
