/** The subcommands and their options. The modules of a subcommand are loaded when it is used, so that each starts fast. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { config_file_default } from '../kit/config/config.ts';
import { ConfigInvalid, messageOf, SchemaRefused } from '../platform/errors.ts';
import { DaemonUnavailable } from '../kit/local/client.ts';
import type { DaemonOptions } from './daemon/client.ts';
import type { TaskOptions } from './task.ts';
import { addDemo } from './demo/command.ts';
import { type Act, complain, exit, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { version } from './version.ts';
import { each, withDatabase } from './service/database-options.ts';
import { readTime } from '../cloud/api/times.ts';
import { isStandaloneFile, standalone_file_default } from '../kit/config/standalone.ts';
import { broker_kinds } from './service/broker-steps.ts';

/** Nothing is checked: each subcommand declares the arguments and options that its function takes. */
const anyLoad = z.custom<(options: unknown) => Promise<(...args: readonly unknown[]) => Promise<number>>>();

/** Runs the subcommand that `args` names and returns the exit code. */
export async function runProgram(args: readonly string[], shell: Shell): Promise<number> {
  let code: number = exit.ok;
  const finish = (result: number): void => {
    code = result;
  };
  try {
    await buildProgram(shell, finish).parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    return report(error, shell);
  }
}

function report(error: unknown, shell: Shell): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage;
  if (error instanceof ConfigInvalid) {
    complain(shell, ...error.faults);
    return exit.config;
  }
  // A request interrupted by Ctrl-C is not reported as a failure.
  if (!shell.signal.aborted) complain(shell, messageOf(error));
  // No further start of this program would help.
  if (error instanceof SchemaRefused) return exit.config;
  return error instanceof DaemonUnavailable ? exit.unavailable : exit.failed;
}

/** Builds the whole command line; the manual page and the shell completions are generated from it. `addExtras`: commands that the package leaves out. */
export function buildProgram(
  shell: Shell,
  finish: (code: number) => void,
  addExtras: typeof addDemo = addDemo,
): Command {
  const program = new Command('kit-connector')
    .description(
      "Connects a field kit's devices to the cloud and buffers every message while the kit is offline.",
    )
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
      outputError: (text, write) =>
        write(text.includes('too many arguments') ? `${text}${texts.config_hint}\n` : text),
    });
  const act: Act =
    (load) =>
    async (...args) => {
      const run = await anyLoad.parse(load)(args.at(-2));
      // The last one is the command itself.
      finish(await run(...args.slice(0, -1), shell));
    };
  addDaemonCommands(program, act);
  addDiagnosis(program, act);
  addViews(program, shell, act);
  addAsset(program, act);
  addBuffer(program, act);
  addLogLevel(program, act);
  addService(program, act);
  addHistory(program, act);
  addExtras(program, act);
  return program;
}

function addDaemonCommands(program: Command, act: Act): void {
  program
    .command('run')
    .description('run the daemon until SIGTERM or Ctrl-C')
    .option('-c, --config <file>', 'configuration file', config_file_default)
    .action(act(async () => (await import('./run.ts')).run));
  program
    .command('check')
    .description('check the configuration without touching a device')
    .argument('[file]', 'configuration file, in place of --config')
    .option('-c, --config <file>', 'configuration file', config_file_default)
    .option('-q, --quiet', 'print faults only')
    .action(act(async () => (await import('./check.ts')).check));
}

function addDiagnosis(program: Command, act: Act): void {
  withDaemon(program.command('doctor').description('diagnose faults and show remedies'))
    .option('--ntp <server>', 'time server to compare the clock with: host or host:port')
    .option('--json', 'as JSON')
    .action(
      act(async (options: DaemonOptions) =>
        (await isOfService(options))
          ? (await import('./service/doctor.ts')).doctorOfService
          : (await import('./doctor.ts')).doctor,
      ),
    );
  withDaemon(
    program
      .command('support-bundle')
      .description('write diagnostic data for support to a file, without secrets'),
  )
    .option(
      '-o, --output <file>',
      'file to write; default: a file with the time in its name, in this directory',
    )
    .option('--payloads', 'include the messages in quarantine')
    .action(
      act(async (options: DaemonOptions) =>
        (await isOfService(options))
          ? (await import('./service/support-bundle.ts')).serviceBundle
          : (await import('./support-bundle.ts')).supportBundle,
      ),
    );
  program
    .command('setup')
    .description('ask for the settings of the kit, scan for devices and write the configuration')
    .option('-c, --config <file>', 'configuration file to write', config_file_default)
    .option('--from <file>', 'file of "kit-connector service enrol": id, name, broker and login of the kit')
    .option(
      '--broker <url>',
      'mqtts://host:port or wss://host:port/path; "none" keeps everything in the buffer',
    )
    .option('--username <name>', 'user name at the broker; default: the kit id')
    .option('--password-file <file>', 'file with the password for the broker; it is copied')
    .option('--ca <file>', 'CA certificate of the broker, PEM')
    .option('--cert <file>', 'client certificate of this kit, PEM, if the broker requires one')
    .option('--key <file>', 'private key of the certificate, PEM; both are copied to the credential store')
    .option('--kit-id <uuid>', 'kit id; default: a new one')
    .option('--kit-name <name>', 'display name of the kit')
    .option('--state-dir <dir>', 'directory of the buffer; default: that of the package')
    .option('--runtime-dir <dir>', 'directory of the control socket; default: that of the package')
    .option('--scan <seconds>', 'duration of the device scan; 0: no scan', notNegative, 4)
    .option('--no-try', 'do not connect to the broker before writing the configuration')
    .option(
      '--no-ask',
      'do not ask; what no flag sets stays as configured, and nothing is written if the broker rejects the login',
    )
    .option('--force', 'change an existing configuration; what setup does not ask for stays')
    .action(act(async () => (await import('./setup.ts')).setup));
  program
    .command('login')
    .description('change what the kit logs in with at its broker, tried before it is written')
    .option('-c, --config <file>', 'configuration file', config_file_default)
    .option('--username <name>', 'user name at the broker')
    .option('--password-file <file>', 'file with the password; it is copied')
    .option('--ca <file>', 'CA certificate of the broker, PEM')
    .option('--cert <file>', 'client certificate of this kit, PEM')
    .option('--key <file>', 'private key of the certificate, PEM')
    .option('--no-try', 'do not connect to the broker before writing')
    .option('--no-ask', 'do not ask; what no flag sets stays as configured')
    .action(act(async () => (await import('./setup.ts')).login));
}

/** Of a file of the service for many kits the commands of that service are meant. */
async function isOfService({ config }: { readonly config: string }): Promise<boolean> {
  return isStandaloneFile(config).catch(() => false);
}

type TaskArguments = [
  asset: string | undefined,
  command: string | undefined,
  payload: string,
  options: TaskOptions,
];

function addViews(program: Command, shell: Shell, act: Act): void {
  withDaemon(
    program
      .command('health')
      .description(
        'whether the daemon, or the service of this configuration, makes progress; for health checks',
      ),
  ).action(act(async () => (await import('./health.ts')).health));
  withDaemon(program.command('status').description('show kit status'))
    .option('-w, --watch', 'refresh every second until Ctrl-C')
    .option('--json', 'as JSON')
    .action(
      act(async (options: DaemonOptions) =>
        (await isOfService(options))
          ? (await import('./service/status.ts')).serviceStatus
          : (await import('./status.ts')).status,
      ),
    );
  withDaemon(program.command('tail').description('follow published messages'))
    .option('--asset <asset>', 'only this asset: id, key or name')
    .option('--feed <feed>', 'only this feed; also asset, commands, task, telemetry')
    .option('-v, --verbose', 'whole messages, including command definitions')
    .option('--json', 'one JSON object per line')
    .action(act(async () => (await import('./tail.ts')).tail));
  withDaemon(
    program
      .command('task')
      .description(
        'run a command of an asset; ASSET alone: list its commands and their fields; nothing: list tasks',
      ),
  )
    .argument('[asset]', 'id, key or name')
    .argument('[command]', 'name of the command')
    .argument('[payload]', 'JSON object', '{}')
    .option(
      '--deadline <seconds>',
      "time limit of the task; default: the command's own limit, which is longer where it waits for an arrival",
      positive,
    )
    .option('--json', 'as JSON')
    .action(
      act(async () => {
        const { listCommands, listTasks, runTask } = await import('./task.ts');
        return async (...[asset, command, payload, options]: TaskArguments) => {
          if (asset === undefined) return listTasks(options, shell);
          if (command === undefined) return listCommands(asset, options, shell);
          return runTask({ asset, command, payload }, options, shell);
        };
      }),
    );
}

function addAsset(program: Command, act: Act): void {
  const asset = program.command('asset').description('manage the assets of the kit (status lists them)');
  withDaemon(asset.command('forget').description('remove an asset permanently'))
    .argument('<asset>', 'id, key or name')
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./asset.ts')).forgetAsset));
}

function addBuffer(program: Command, act: Act): void {
  const buffer = program.command('buffer').description('show the message buffer and its quarantine');
  withDaemon(buffer.command('show', { isDefault: true }).description('show the backlog'))
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./buffer.ts')).buffer));
  const quarantine = buffer.command('quarantine').description('messages that the broker rejected');
  withDaemon(quarantine.command('list', { isDefault: true }).description('list the messages'))
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./buffer.ts')).listQuarantine));
  withDaemon(quarantine.command('show').description('print a message with its body, as JSON'))
    .argument('<id>', 'id of the message', oneId)
    .action(act(async () => (await import('./buffer.ts')).showQuarantined));
  withDaemon(quarantine.command('retry').description('return messages to the buffer'))
    .argument('[ids...]', 'ids; default: all', eachId)
    .action(act(async () => (await import('./buffer.ts')).retryQuarantine));
  withDaemon(quarantine.command('discard').description('discard messages permanently'))
    .argument('[ids...]', 'ids of the messages', eachId)
    .option('--all', 'all of them')
    .action(act(async () => (await import('./buffer.ts')).discardQuarantine));
}

function addLogLevel(program: Command, act: Act): void {
  withDaemon(program.command('log-level').description('show log levels, or change them for a limited time'))
    .argument('[settings...]', 'LEVEL, NAME=LEVEL or NAME=reset; without any: show the levels')
    .option('--for <time>', 'duration: 90s, 10m or 2h; at most 24h', '15m')
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./log-level.ts')).logLevel));
}

function withDaemon(command: Command): Command {
  return command
    .option('--socket <path>', 'control socket; default: that of the configuration')
    .option('-c, --config <file>', 'configuration file', config_file_default);
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new InvalidArgumentError('write a number of seconds above 0.');
  return value;
}

function notNegative(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value <= 60)) throw new InvalidArgumentError('write a number of seconds, at most 60.');
  return value;
}

function oneId(text: string): number {
  const id = Number(text);
  if (!Number.isSafeInteger(id) || id < 0)
    throw new InvalidArgumentError('write an id as "quarantine list" shows it.');
  return id;
}

function eachId(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, oneId(text)];
}

function addHistory(program: Command, act: Act): void {
  const history = program
    .command('history')
    .description('list, export and import the history of the service');
  withDatabase(history.command('list', { isDefault: true }).description('list the kits with history')).action(
    act(async () => (await import('./history.ts')).listHistory),
  );
  withDatabase(history.command('export').description('write the history of kits to a file'))
    .argument('<file>', 'file to write, NDJSON; compressed when the name ends in .gz')
    .addOption(
      new Option('--kit <uuid>', 'kit to export; repeatable').argParser(each).default([], 'all kits'),
    )
    .option('--force', 'replace a file that exists')
    .action(act(async () => (await import('./history.ts')).exportHistory));
  withDatabase(
    history.command('import').description('add an export to the history; repeating it adds nothing'),
  )
    .argument('<file>', 'file of "history export"')
    .action(act(async () => (await import('./history.ts')).importHistory));
}

const isoDate = z.iso.date();
const authority_default = '/etc/kit-connector-service/authority';

function addService(program: Command, act: Act): void {
  const service = program.command('service').description('HTTP API for kits, assets, telemetry and tasks');
  service
    .command('run', { isDefault: true })
    .description('run the service until SIGTERM or Ctrl-C')
    .option('-c, --config <file>', 'configuration file of the service', standalone_file_default)
    .action(act(async () => (await import('./service.ts')).service));
  addServiceDiagnosis(service, act);
  withDatabase(
    service
      .command('upgrade')
      .description(
        'bring the tables of the database up to date now; services of versions that it excludes end',
      ),
  ).action(act(async () => (await import('./service/database.ts')).upgradeTables));
  service
    .command('enrol')
    .description(
      'make the login of a kit at the broker: a file for its setup, and what the broker has to know',
    )
    .argument('<name>', 'display name of the kit')
    .requiredOption('--broker <url>', 'address that kits connect to, such as mqtts://broker.example.com:8883')
    .option('--kit-id <uuid>', 'id of the kit; default: a new one')
    .option(
      '--authority <dir>',
      'folder with ca.crt and ca.key, which sign the certificates of kits; made when it is missing',
      authority_default,
    )
    .option('--days <days>', 'validity of the certificate', days, 825)
    .option('--password', 'make a password in place of a certificate')
    .option('--ca <file>', "authority of the broker's certificate, PEM; default: those of the kit's system")
    .addOption(
      new Option(
        '--broker-kind <kind>',
        'print what this broker has to be told; default: each of them',
      ).choices(broker_kinds),
    )
    .option('-o, --out <file>', 'file to write; default: NAME.kit')
    .action(act(async () => (await import('./service/enrol.ts')).enrol));
  withDatabase(
    service
      .command('backup')
      .description('copy the SQLite database to a file; the service may run meanwhile'),
  )
    .argument('<file>', 'file to write')
    .option('--force', 'replace a file that exists')
    .action(act(async () => (await import('./service/database.ts')).backUp));
  withDatabase(
    service
      .command('copy-database')
      .description(
        'copy everything from a SQLite database into the empty PostgreSQL of the configuration; stop the service before',
      ),
  )
    .argument('<file>', 'SQLite database, or a backup of one')
    .action(act(async () => (await import('./service/database.ts')).copyDatabaseFrom));
  addKeys(service, act);
}

function addKeys(service: Command, act: Act): void {
  const key = service.command('key').description('manage API keys');
  withDatabase(key.command('list', { isDefault: true }).description('list the keys')).action(
    act(async () => (await import('./service/key.ts')).listKeys),
  );
  const withRights = (command: Command, unnamed: string): Command =>
    withDatabase(command)
      .option('--kit <uuid>', 'kit that the key may access; repeatable', each, [])
      .option('--all-kits', 'access to all kits, including later ones')
      .option(
        '--scope <scope>',
        `what the key may do: read, assets:write, commands, alarms, history:erase, webhooks or keys (to manage keys); repeatable; ${unnamed}`,
        each,
        [],
      )
      .option('--days <days>', 'expires after this time', days)
      .option(
        '--expires <date>',
        'expires at this date (in UTC) or time, such as 2027-01-31 or 2027-01-31T18:00:00+01:00',
        moment,
      );
  withRights(key.command('add').description('create a key, which is shown once'), 'default: all but keys')
    .argument('<label>', 'name of the client')
    .action(act(async () => (await import('./service/key.ts')).addKey));
  withRights(
    key.command('change').description('change name, kits, scopes or end of a key; its secret stays'),
    'in place of those that it has',
  )
    .argument('<id>', 'as "list" shows it')
    .option('--label <label>', 'name of the client')
    .option('--add-kit <uuid>', 'kit beside those that the key may access; repeatable', each, [])
    .action(act(async () => (await import('./service/key.ts')).changeKey));
  withDatabase(key.command('revoke').description('revoke a key'))
    .argument('<id>', 'as "list" shows it')
    .action(act(async () => (await import('./service/key.ts')).revokeKey));
}

function addServiceDiagnosis(service: Command, act: Act): void {
  const withFile = (command: Command): Command =>
    command.option('-c, --config <file>', 'configuration file of the service', standalone_file_default);
  withFile(service.command('doctor').description('diagnose faults of the service and show remedies'))
    .option('--ntp <server>', 'time server to compare the clock with: host or host:port')
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./service/doctor.ts')).doctorOfService));
  withFile(service.command('status').description('show broker, database, kits, keys and webhooks'))
    .option('--json', 'as JSON')
    .action(act(async () => (await import('./service/status.ts')).serviceStatus));
  withFile(
    service
      .command('support-bundle')
      .description('write diagnostic data of the service to a file, without secrets'),
  )
    .option(
      '-o, --output <file>',
      'file to write; default: a file with the time in its name, in this directory',
    )
    .action(act(async () => (await import('./service/support-bundle.ts')).serviceBundle));
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
