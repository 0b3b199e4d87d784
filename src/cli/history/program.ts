/** The subcommand `history` and its options. */
import { type Command, Option } from 'commander';
import type { Shell } from '../terminal/shell.ts';
import type { ExportOptions } from './transfer.ts';
import { type DatabaseOptions, each, withDatabase } from '../service/database-options.ts';

export function addHistory(program: Command, shell: Shell, finish: (code: number) => void): void {
  const history = program
    .command('history')
    .description('list, export and import the history of the service');
  withDatabase(history.command('list', { isDefault: true }).description('list the kits with history')).action(
    async (options: DatabaseOptions) =>
      finish(await (await import('./transfer.ts')).listHistory(options, shell)),
  );
  withDatabase(history.command('export').description('write the history of kits to a file'))
    .argument('<file>', 'file to write, NDJSON; compressed when the name ends in .gz')
    .addOption(
      new Option('--kit <uuid>', 'kit to export; repeatable').argParser(each).default([], 'all kits'),
    )
    .option('--force', 'replace a file that exists')
    .action(async (file: string, options: ExportOptions) =>
      finish(await (await import('./transfer.ts')).exportHistory(file, options, shell)),
    );
  withDatabase(
    history.command('import').description('add an export to the history; repeating it adds nothing'),
  )
    .argument('<file>', 'file of "history export"')
    .action(async (file: string, options: DatabaseOptions) =>
      finish(await (await import('./transfer.ts')).importHistory(file, options, shell)),
    );
}
