/** The subcommand `service` and its options. */
import { type Command, InvalidArgumentError } from 'commander';
import { standalone_file_default } from '../config/standalone.ts';
import type { AddKeyOptions, KeyOptions } from './service-key.ts';
import type { Shell } from './shell.ts';

export function addService(program: Command, shell: Shell, finish: (code: number) => void): void {
  const service = program
    .command('service')
    .description('what clients of the cloud ask: kits, assets, telemetry and tasks over HTTP');
  service
    .command('run', { isDefault: true })
    .description('run it until SIGTERM or Ctrl-C')
    .option('-c, --config <file>', 'its configuration file', standalone_file_default)
    .action(async ({ config }: { config: string }) =>
      finish(await (await import('./service.ts')).service(config, shell)),
    );
  const key = service.command('key').description('who may ask');
  withDatabase(key.command('list', { isDefault: true }).description('list the keys')).action(
    async (options: KeyOptions) => finish(await (await import('./service-key.ts')).listKeys(options, shell)),
  );
  withDatabase(key.command('add').description('make a key, which is shown once'))
    .argument('<label>', 'whose it is')
    .option('--kit <uuid>', 'a kit that it may see; again for each', each, [])
    .option('--all-kits', 'it may see every kit, also later ones')
    .option('--scope <scope>', 'read, assets:write or commands; again for each; all when left out', each, [])
    .option('--days <days>', 'it ends after this time', days)
    .action(async (label: string, options: AddKeyOptions) =>
      finish(await (await import('./service-key.ts')).addKey(label, options, shell)),
    );
  withDatabase(key.command('revoke').description('take a key back'))
    .argument('<id>', 'as "list" shows it')
    .action(async (id: string, options: KeyOptions) =>
      finish(await (await import('./service-key.ts')).revokeKey(id, options, shell)),
    );
}

function withDatabase(command: Command): Command {
  return command
    .option('-c, --config <file>', "the service's configuration file", standalone_file_default)
    .option('--database <file>', 'its database; the one of the configuration when left out')
    .option('--json', 'as JSON');
}

function each(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

function days(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new InvalidArgumentError('write a number of days above 0.');
  return value;
}
