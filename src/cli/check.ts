/** `kit-connector check`: validates the configuration without connecting to devices or the broker. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { drivers } from '../../drivers/index.ts';
import { type Config, config_file_default, readConfig } from '../kit/config/config.ts';
import { cautionsOf } from '../kit/config/drivers.ts';
import { state_dir_default } from '../kit/config/schema.ts';
import { parseSource, readSource } from '../kit/config/source.ts';
import {
  isStandaloneFile,
  readStandalone,
  standalone_file_default,
  type StandaloneConfig,
} from '../kit/config/standalone.ts';
import { ConfigInvalid } from '../platform/errors.ts';
import { nearestExisting } from '../kit/config/state-place.ts';
import { installedUser, isAllowed, obstacle, type ServiceUser } from './doctor/service-user.ts';
import { filesIn, touchpointsOf } from './doctor/touchpoints.ts';
import { replicationWarnings } from '../cloud/sql/replication.ts';
import { type Shell, complain, exit, painter, say } from './terminal/shell.ts';
import { firstKeyOf } from './service/first-key.ts';
import { service_unit } from './service/look.ts';
import { texts } from './texts.ts';

interface CheckOptions {
  readonly config: string;
  /** Prints faults only, no warnings and no summary. */
  readonly quiet?: true;
}

export async function check(
  given: string | undefined,
  { config: config_file, quiet }: CheckOptions,
  shell: Shell,
): Promise<number> {
  const file = given ?? config_file;
  if (await isStandaloneFile(file)) return checkStandalone(file, shell, quiet);
  const config = await readConfig(file, { drivers, credentials_dir: shell.env['CREDENTIALS_DIRECTORY'] });
  const user = file === config_file_default ? await installedUser() : undefined;
  const named = user && touchpointsOf(await valueOf(file), config.drivers, dirname(resolve(file))).secrets;
  await checkReadable(file, named ?? [], user);
  await checkWritable(config, file, user);
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
async function checkStandalone(file: string, shell: Shell, quiet?: true): Promise<number> {
  const config = await readStandalone(file, shell.env['CREDENTIALS_DIRECTORY']);
  firstKeyOf(file, config);
  const user = file === standalone_file_default ? await installedUser('/etc', service_unit) : undefined;
  const named = user && filesIn(await valueOf(file), 'the service', dirname(resolve(file)));
  await checkReadable(file, named ?? [], user);
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

async function valueOf(file: string): Promise<unknown> {
  return parseSource(file, await readSource(file)).value;
}

/** Whether its user can read the file and what it names. Root can read everything: without this a check by root would call good what keeps the service off. */
export async function checkReadable(
  file: string,
  named: readonly { readonly path: string }[],
  user: ServiceUser | undefined,
): Promise<void> {
  if (user === undefined) return;
  const paths = [file, ...named.map(({ path }) => path)];
  const barred = await Promise.all(paths.map(async (path) => obstacle(path, user, { write: false })));
  const faults = barred.flatMap((each) => (each ? [`${file}: ${each.finding}; ${each.remedy}`] : []));
  if (faults.length > 0) throw new ConfigInvalid(faults);
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
