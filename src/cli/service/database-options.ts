/** Options of the commands that work on the database of the service. */
import type { Command } from 'commander';
import { standalone_file_default } from '../../kit/config/standalone.ts';

export interface DatabaseOptions {
  readonly config: string;
  readonly database?: string;
  readonly json?: boolean;
}

export function withDatabase(command: Command): Command {
  return command
    .option('-c, --config <file>', 'configuration file of the service', standalone_file_default)
    .option('--database <file>', 'database; default: that of the configuration')
    .option('--json', 'as JSON');
}

/** Collects the values of an option that may be given several times. */
export function each(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}
