/** `kit-connector check`: validates the configuration without connecting to devices or the broker. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { drivers } from '../../drivers/index.ts';
import { type Config, config_file_default, readConfig } from '../kit/config/config.ts';
import { cautionsOf } from '../kit/config/drivers.ts';
import { state_dir_default } from '../kit/config/schema.ts';
import { isStandaloneFile, readStandalone, type StandaloneConfig } from '../kit/config/standalone.ts';
import { ConfigInvalid } from '../platform/errors.ts';
import { nearestExisting } from '../kit/config/state-place.ts';
import { installedUser, isAllowed, type ServiceUser } from './doctor/service-user.ts';
import { replicationWarnings } from '../cloud/sql/replication.ts';
import { type Shell, complain, exit, painter, say } from './terminal/shell.ts';
import { firstKeyOf } from './service/first-key.ts';
import { texts } from './texts.ts';

export interface CheckOptions {
  /** Prints faults only, no warnings and no summary. */
  readonly quiet?: true;
}

export async function check(file: string, shell: Shell, { quiet }: CheckOptions = {}): Promise<number> {
  if (await isStandaloneFile(file)) return checkStandalone(file, shell, { ...(quiet && { quiet }) });
  const config = await readConfig(file, { drivers, credentials_dir: shell.env['CREDENTIALS_DIRECTORY'] });
  await checkWritable(config, file, file === config_file_default ? await installedUser() : undefined);
  if (quiet) return exit.ok;
  const paint = painter(shell);
  const cautions = cautionsOf(config.drivers).map(({ name, sentence }) => `driver ${name}: ${sentence}`);
  complain(shell, ...[...config.warnings, ...cautions].map((warning) => `${file}: warning: ${warning}`));
  const count = config.drivers.length;
  const broker = config.broker?.url ?? texts.embedded_broker;
  say(
    shell,
    `${file}: ${paint('good', 'ok')}, ${count} ${count === 1 ? 'driver' : 'drivers'}, broker ${broker}`,
  );
  return exit.ok;
}

/** Where the messages of kits come from, for people. */
function sourceOf({ broker, amqp }: Pick<StandaloneConfig, 'broker' | 'amqp'>): string {
  return amqp ? `queue ${amqp.queue} at ${amqp.urls.join(', ')}` : `broker ${broker?.url}`;
}

/** The file of the service that runs alone. Of a PostgreSQL, its replication is looked at, unless quiet: a start must not wait for it. */
async function checkStandalone(file: string, shell: Shell, { quiet }: CheckOptions): Promise<number> {
  const config = await readStandalone(file, shell.env['CREDENTIALS_DIRECTORY']);
  firstKeyOf(file, config);
  if (quiet) return exit.ok;
  const paint = painter(shell);
  const { host, port } = config.listen;
  complain(shell, ...config.warnings.map((warning) => `${file}: warning: ${warning}`));
  const at = `${config.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const { database } = config;
  const warnings =
    database.kind === 'sqlite' ? [] : await replicationWarnings(database, database.isReplicated);
  complain(shell, ...warnings.map((warning) => `${file}: warning: ${warning}`));
  const name = database.kind === 'sqlite' ? database.file : database.url.replace(/\?.*$/u, '');
  say(shell, `${file}: ${paint('good', 'ok')}, service at ${at}, ${sourceOf(config)}, database ${name}`);
  return exit.ok;
}

/**
 * Checks whether the daemon can write its state. `service`: the user that runs it with this file; undefined: the current user.
 * A technician of its group can read the configuration but not write, and root can write everywhere.
 */
export async function checkWritable(
  { state_dir }: Pick<Config, 'state_dir'>,
  file: string,
  service: ServiceUser | undefined,
): Promise<void> {
  const dir = await nearestExisting(state_dir);
  if (service !== undefined) {
    // systemd creates this directory for the user of the service.
    if (state_dir === state_dir_default || (await isAllowed(dir, service, 0o3))) return;
    throw new ConfigInvalid([
      `${file} state_dir: ${texts.dir_unwritable(dir, `user ${service.name}`, `run "chown ${service.name} ${dir}"`)}`,
    ]);
  }
  await access(dir, constants.W_OK | constants.X_OK).catch(() => {
    throw new ConfigInvalid([
      `${file} state_dir: ${texts.dir_unwritable(dir, 'this user', 'run the check as the user of the daemon')}`,
    ]);
  });
}
