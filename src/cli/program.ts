/** The subcommands and their options. The modules of a subcommand are loaded when it is used, so that each starts fast. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { config_file_default } from '../config/config.ts';
import { ConfigInvalid, messageOf, SchemaRefused } from '../errors.ts';
import { DaemonUnavailable } from '../local/client.ts';
import type { CheckOptions } from './check.ts';
import type { DaemonOptions } from './daemon/client.ts';
import type { DiscardOptions } from './buffer.ts';
import type { LogLevelOptions } from './log-level.ts';
import type { DoctorOptions } from './doctor.ts';
import type { SetupOptions } from './setup.ts';
import type { StatusOptions } from './status.ts';
import type { BundleOptions } from './support-bundle.ts';
import type { TailOptions } from './tail.ts';
import type { TaskOptions } from './task.ts';
import { addDemo } from './demo/command.ts';
import { addHistory } from './history/program.ts';
import { addService } from './service/program.ts';
import { complain, exit, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { version } from './version.ts';

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
  addDaemonCommands(program, shell, finish);
  addDiagnosis(program, shell, finish);
  addViews(program, shell, finish);
  addAsset(program, shell, finish);
  addBuffer(program, shell, finish);
  addLogLevel(program, shell, finish);
  addService(program, shell, finish);
  addHistory(program, shell, finish);
  addExtras(program, shell, finish);
  return program;
}

function addDaemonCommands(program: Command, shell: Shell, finish: (code: number) => void): void {
  program
    .command('run')
    .description('run the daemon until SIGTERM or Ctrl-C')
    .option('-c, --config <file>', 'configuration file', config_file_default)
    .action(async ({ config }: { config: string }) =>
      finish(await (await import('./run.ts')).run(config, shell)),
    );
  program
    .command('check')
    .description('check the configuration without touching a device')
    .argument('[file]', 'configuration file, in place of --config')
    .option('-c, --config <file>', 'configuration file', config_file_default)
    .option('-q, --quiet', 'print faults only')
    .action(async (file: string | undefined, { config, ...options }: CheckOptions & { config: string }) =>
      finish(await (await import('./check.ts')).check(file ?? config, shell, options)),
    );
}

function addDiagnosis(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('doctor').description('diagnose faults and show remedies'))
    .option('--ntp <server>', 'time server to compare the clock with: host or host:port')
    .option('--json', 'as JSON')
    .action(async (options: DoctorOptions) =>
      finish(await (await import('./doctor.ts')).doctor(options, shell)),
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
    .action(async (options: BundleOptions) =>
      finish(await (await import('./support-bundle.ts')).supportBundle(options, shell)),
    );
  program
    .command('setup')
    .description('ask for the settings of the kit, scan for devices and write the configuration')
    .option('-c, --config <file>', 'configuration file to write', config_file_default)
    .option('--broker <url>', 'mqtts://host:port; "none" keeps everything in the buffer')
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
    .option('--force', 'replace an existing configuration')
    .action(async (options: SetupOptions) =>
      finish(await (await import('./setup.ts')).setup(options, shell)),
    );
}

function addViews(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('status').description('show kit status'))
    .option('-w, --watch', 'refresh every second until Ctrl-C')
    .option('--json', 'as JSON')
    .action(async (options: StatusOptions) =>
      finish(await (await import('./status.ts')).status(options, shell)),
    );
  withDaemon(program.command('tail').description('follow published messages'))
    .option('--asset <asset>', 'only this asset: id, key or name')
    .option('--feed <feed>', 'only this feed; also asset, commands, task, telemetry')
    .option('-v, --verbose', 'whole messages, including command definitions')
    .option('--json', 'one JSON object per line')
    .action(async (options: TailOptions) => finish(await (await import('./tail.ts')).tail(options, shell)));
  withDaemon(program.command('task').description('run a command of an asset; without arguments: list tasks'))
    .argument('[asset]', 'id, key or name')
    .argument('[command]', 'name of the command')
    .argument('[payload]', 'JSON object', '{}')
    .option('--deadline <seconds>', "time limit of the task; default: the command's own limit", positive)
    .option('--json', 'as JSON')
    .action(
      async (
        asset: string | undefined,
        command: string | undefined,
        payload: string,
        options: TaskOptions,
      ) => {
        const { listTasks, runTask } = await import('./task.ts');
        if (asset === undefined) return finish(await listTasks(options, shell));
        if (command === undefined) {
          complain(shell, 'no command given; write kit-connector task ASSET COMMAND [JSON]');
          return finish(exit.usage);
        }
        return finish(await runTask({ asset, command, payload }, options, shell));
      },
    );
}

function addAsset(program: Command, shell: Shell, finish: (code: number) => void): void {
  const asset = program.command('asset').description('manage the assets of the kit (status lists them)');
  withDaemon(asset.command('forget').description('remove an asset permanently'))
    .argument('<asset>', 'id, key or name')
    .option('--json', 'as JSON')
    .action(async (name: string, options: DaemonOptions) =>
      finish(await (await import('./asset.ts')).forgetAsset(name, options, shell)),
    );
}

function addBuffer(program: Command, shell: Shell, finish: (code: number) => void): void {
  const buffer = program.command('buffer').description('show the message buffer and its quarantine');
  withDaemon(buffer.command('show', { isDefault: true }).description('show the backlog'))
    .option('--json', 'as JSON')
    .action(async (options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).buffer(options, shell)),
    );
  const quarantine = buffer.command('quarantine').description('messages that the broker rejected');
  withDaemon(quarantine.command('list', { isDefault: true }).description('list the messages'))
    .option('--json', 'as JSON')
    .action(async (options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).listQuarantine(options, shell)),
    );
  withDaemon(quarantine.command('show').description('print a message with its body, as JSON'))
    .argument('<id>', 'id of the message', oneId)
    .action(async (id: number, options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).showQuarantined(id, options, shell)),
    );
  withDaemon(quarantine.command('retry').description('return messages to the buffer'))
    .argument('[ids...]', 'ids; default: all', eachId)
    .action(async (ids: readonly number[], options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).retryQuarantine(ids, options, shell)),
    );
  withDaemon(quarantine.command('discard').description('discard messages permanently'))
    .argument('[ids...]', 'ids of the messages', eachId)
    .option('--all', 'all of them')
    .action(async (ids: readonly number[], options: DiscardOptions) =>
      finish(await (await import('./buffer.ts')).discardQuarantine(ids, options, shell)),
    );
}

function addLogLevel(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('log-level').description('show log levels, or change them for a limited time'))
    .argument('[settings...]', 'LEVEL, NAME=LEVEL or NAME=reset; without any: show the levels')
    .option('--for <time>', 'duration: 90s, 10m or 2h; at most 24h', '15m')
    .option('--json', 'as JSON')
    .action(async (settings: readonly string[], options: LogLevelOptions) =>
      finish(await (await import('./log-level.ts')).logLevel(settings, options, shell)),
    );
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
