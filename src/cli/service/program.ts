/** The subcommand `service` and its options. */
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { readTime } from '../../service/api/times.ts';
import { standalone_file_default } from '../../config/standalone.ts';
import type { AddKeyOptions } from './key.ts';
import type { Shell } from '../terminal/shell.ts';
import { type DatabaseOptions, each, withDatabase } from './database-options.ts';

const isoDate = z.iso.date();

export function addService(program: Command, shell: Shell, finish: (code: number) => void): void {
  const service = program.command('service').description('HTTP API for kits, assets, telemetry and tasks');
  service
    .command('run', { isDefault: true })
    .description('run the service until SIGTERM or Ctrl-C')
    .option('-c, --config <file>', 'configuration file of the service', standalone_file_default)
    .action(async ({ config }: { config: string }) =>
      finish(await (await import('../service.ts')).service(config, shell)),
    );
  withDatabase(
    service
      .command('upgrade')
      .description(
        'bring the tables of the database up to date now; services of versions that it excludes end',
      ),
  ).action(async (options: DatabaseOptions) =>
    finish(await (await import('./upgrade.ts')).upgradeTables(options, shell)),
  );
  const key = service.command('key').description('manage API keys');
  withDatabase(key.command('list', { isDefault: true }).description('list the keys')).action(
    async (options: DatabaseOptions) => finish(await (await import('./key.ts')).listKeys(options, shell)),
  );
  withDatabase(key.command('add').description('create a key, which is shown once'))
    .argument('<label>', 'name of the client')
    .option('--kit <uuid>', 'kit that the key may access; repeatable', each, [])
    .option('--all-kits', 'access to all kits, including later ones')
    .option(
      '--scope <scope>',
      'what the key may do: read, assets:write, commands, history:erase or webhooks; repeatable; default: all',
      each,
      [],
    )
    .option('--days <days>', 'expires after this time', days)
    .option(
      '--expires <date>',
      'expires at this date (in UTC) or time, such as 2027-01-31 or 2027-01-31T18:00:00+01:00',
      moment,
    )
    .action(async (label: string, options: AddKeyOptions) =>
      finish(await (await import('./key.ts')).addKey(label, options, shell)),
    );
  withDatabase(key.command('revoke').description('revoke a key'))
    .argument('<id>', 'as "list" shows it')
    .action(async (id: string, options: DatabaseOptions) =>
      finish(await (await import('./key.ts')).revokeKey(id, options, shell)),
    );
}

/** A date alone is its beginning in UTC. */
function moment(text: string): number {
  const value = isoDate.safeParse(text).success ? Date.parse(text) : readTime(text);
  if (value === undefined || value <= Date.now())
    throw new InvalidArgumentError(
      'write a future date or time, such as 2027-01-31 or 2027-01-31T18:00:00Z.',
    );
  return value;
}

function days(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new InvalidArgumentError('write a number of days above 0.');
  return value;
}
