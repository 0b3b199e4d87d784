/** The subcommands and their options. What a subcommand needs is loaded when it is used, so that each starts fast. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { config_file_default } from '../config.ts';
import { ConfigInvalid, messageOf } from '../errors.ts';
import { DaemonUnavailable } from '../local/client.ts';
import type { CheckOptions } from './check.ts';
import type { DaemonOptions } from './daemon-client.ts';
import type { DiscardOptions } from './buffer.ts';
import type { LogLevelOptions } from './log-level.ts';
import type { DoctorOptions } from './doctor.ts';
import type { SetupOptions } from './setup.ts';
import type { StatusOptions } from './status.ts';
import type { BundleOptions } from './support-bundle.ts';
import type { TailOptions } from './tail.ts';
import type { TaskOptions } from './task.ts';
import { addService } from './service-program.ts';
import { complain, exit, type Shell } from './shell.ts';
import { version } from './version.ts';

/** Runs the subcommand that `args` names and answers the exit code. */
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
  // An answer that was cut off by Ctrl-C is no failure to tell of.
  if (!shell.signal.aborted) complain(shell, messageOf(error));
  return error instanceof DaemonUnavailable ? exit.unavailable : exit.failed;
}

/** The whole command line; the manual page and the completion of the shell are made from it too. */
export function buildProgram(shell: Shell, finish: (code: number) => void): Command {
  const program = new Command('kit-connector')
    .description("Connects a field kit's devices to the cloud and loses nothing while the kit is offline.")
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
    });
  addDaemonCommands(program, shell, finish);
  addDiagnosis(program, shell, finish);
  addViews(program, shell, finish);
  addBuffer(program, shell, finish);
  addLogLevel(program, shell, finish);
  addService(program, shell, finish);
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
    .argument('[file]', 'configuration file', config_file_default)
    .option('-q, --quiet', 'say only what is wrong')
    .action(async (file: string, options: CheckOptions) =>
      finish(await (await import('./check.ts')).check(file, shell, options)),
    );
  program
    .command('demo')
    .description('try it out: a broker of its own, this machine as the kit')
    .action(async () => finish(await (await import('./demo.ts')).demo(shell)));
}

function addDiagnosis(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('doctor').description('look for what is wrong, and what to do about it'))
    .option('--ntp <server>', 'time server to compare the clock with: host or host:port')
    .option('--json', 'as JSON')
    .action(async (options: DoctorOptions) =>
      finish(await (await import('./doctor.ts')).doctor(options, shell)),
    );
  withDaemon(program.command('support-bundle').description('pack what a developer asks for, without secrets'))
    .option('-o, --output <file>', 'the file to write; in this folder, named by the time, when left out')
    .option('--payloads', 'with the messages that the broker refuses')
    .action(async (options: BundleOptions) =>
      finish(await (await import('./support-bundle.ts')).supportBundle(options, shell)),
    );
  program
    .command('setup')
    .description('ask what a kit needs, look for its devices, and write the configuration')
    .option('-c, --config <file>', 'configuration file to write', config_file_default)
    .option('--broker <url>', 'mqtts://host:port; "none" keeps everything in the buffer')
    .option('--username <name>', 'at the broker; the kit id when left out')
    .option('--password-file <file>', 'file that holds the password at the broker; it is copied')
    .option('--ca <file>', "certificate of the broker's authority, PEM")
    .option('--cert <file>', 'certificate of this kit, PEM, where the broker asks for one')
    .option('--key <file>', 'its private key, PEM; both are copied where the service gets them from')
    .option('--kit-id <uuid>', 'a new one when left out')
    .option('--kit-name <name>', 'for people')
    .option('--state-dir <dir>', 'where the buffer lies; the place of the package when left out')
    .option('--runtime-dir <dir>', 'where the control socket lies; the same')
    .option('--scan <seconds>', 'how long to look for devices; 0: not at all', notNegative, 4)
    .option('--no-try', 'do not try the broker before the configuration is written')
    .option('--no-ask', 'ask nothing: what no flag says is left out')
    .option('--force', 'replace a configuration that is there')
    .action(async (options: SetupOptions) =>
      finish(await (await import('./setup.ts')).setup(options, shell)),
    );
}

function addViews(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('status').description('how the kit is'))
    .option('-w, --watch', 'again every second until Ctrl-C')
    .option('--json', 'as JSON')
    .action(async (options: StatusOptions) =>
      finish(await (await import('./status.ts')).status(options, shell)),
    );
  withDaemon(program.command('tail').description('follow what is published'))
    .option('--asset <asset>', 'of this asset only: id, key or name')
    .option('--feed <feed>', 'of this feed only; also asset, commands, task, telemetry')
    .option('--json', 'a line of JSON each')
    .action(async (options: TailOptions) => finish(await (await import('./tail.ts')).tail(options, shell)));
  withDaemon(program.command('task').description('run a command of an asset; without arguments: list tasks'))
    .argument('[asset]', 'id, key or name')
    .argument('[command]', 'name of the command')
    .argument('[payload]', 'JSON object', '{}')
    .option(
      '--deadline <seconds>',
      "give up after this time; the command's own limit when left out",
      positive,
    )
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
          complain(shell, 'name the command too: kit-connector task ASSET COMMAND [JSON]');
          return finish(exit.usage);
        }
        return finish(await runTask({ asset, command, payload }, options, shell));
      },
    );
}

function addBuffer(program: Command, shell: Shell, finish: (code: number) => void): void {
  const buffer = program.command('buffer').description('what waits for delivery, and what is refused');
  withDaemon(buffer.command('show', { isDefault: true }).description('what waits for delivery'))
    .option('--json', 'as JSON')
    .action(async (options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).buffer(options, shell)),
    );
  const quarantine = buffer.command('quarantine').description('messages that the broker refuses');
  withDaemon(quarantine.command('list', { isDefault: true }).description('list them'))
    .option('--json', 'as JSON')
    .action(async (options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).listQuarantine(options, shell)),
    );
  withDaemon(quarantine.command('retry').description('put them back into the buffer'))
    .argument('[ids...]', 'all of them when left out', eachId)
    .action(async (ids: readonly number[], options: DaemonOptions) =>
      finish(await (await import('./buffer.ts')).retryQuarantine(ids, options, shell)),
    );
  withDaemon(quarantine.command('discard').description('give them up for good'))
    .argument('[ids...]', 'which', eachId)
    .option('--all', 'all of them')
    .action(async (ids: readonly number[], options: DiscardOptions) =>
      finish(await (await import('./buffer.ts')).discardQuarantine(ids, options, shell)),
    );
}

function addLogLevel(program: Command, shell: Shell, finish: (code: number) => void): void {
  withDaemon(program.command('log-level').description('how much is logged, changed for a time'))
    .argument('[settings...]', 'LEVEL, NAME=LEVEL or NAME=reset; the levels that hold when left out')
    .option('--for <time>', 'how long: 90s, 10m or 2h; 24h at most', '15m')
    .option('--json', 'as JSON')
    .action(async (settings: readonly string[], options: LogLevelOptions) =>
      finish(await (await import('./log-level.ts')).logLevel(settings, options, shell)),
    );
}

function withDaemon(command: Command): Command {
  return command
    .option('--socket <path>', "control socket; the configuration's when left out")
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
  if (!(value >= 0 && value <= 60)) throw new InvalidArgumentError('write a number of seconds, 60 at most.');
  return value;
}

function eachId(text: string, before: readonly number[] = []): readonly number[] {
  const id = Number(text);
  if (!Number.isSafeInteger(id) || id < 0)
    throw new InvalidArgumentError('write an id as "quarantine list" shows it.');
  return [...before, id];
}
