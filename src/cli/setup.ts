/** `kit-connector setup`: asks or takes flags, looks around for devices, and writes a configuration that works. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { drivers } from '../../drivers/index.ts';
import { type Config, config_file_default, controlSocket, readConfig, readControlSocket } from '../config.ts';
import { no_broker } from '../config/broker.ts';
import { runtime_dir_default } from '../config/schema.ts';
import { ConfigInvalid } from '../errors.ts';
import { isAnswered } from '../local/server.ts';
import { check } from './check.ts';
import { gravest, plain } from './doctor/finding.ts';
import { credential_store } from './doctor/stored-secrets.ts';
import { findingLine } from './doctor.ts';
import { answersOf, type Asked, type SetupFlags } from './setup/answers.ts';
import { keepBefore, readBefore, writeConfig, writeSecret } from './setup/files.ts';
import { scan } from './setup/scan.ts';
import { type Answers, configText, type Found } from './setup/text.ts';
import { readDraft, tryBroker } from './setup/trial.ts';
import { complain, exit, painter, say, type Shell } from './shell.ts';
import { unwritable } from './unwritable.ts';

export interface SetupOptions extends SetupFlags {
  readonly config: string;
  /** Seconds; 0: nobody looks. */
  readonly scan: number;
  /** Whether the broker is tried before anything is written. */
  readonly try: boolean;
  readonly force?: true;
}

/** Exit code 64 when the file is there and may not be replaced, 78 when what was answered has faults; nothing is written then. */
export async function setup(options: SetupOptions, shell: Shell): Promise<number> {
  const file = resolve(options.config);
  const before = await readBefore(file).catch(unwritable(file));
  if (before?.isOwn && !options.force) {
    complain(
      shell,
      `${file} is there already; change it, or let --force replace it (a copy is kept beside it)`,
    );
    return exit.usage;
  }
  const asked = await answersOf(options, before?.kit_id, shell);
  const socket = await readControlSocket(file).catch(() => controlSocket(runtime_dir_default));
  const found = await lookAround(options.scan, await isAnswered(socket), shell);
  if (shell.signal.aborted) return exit.failed;
  const config = await readDraft(file, asked, found).catch((error: unknown) => {
    if (error instanceof ConfigInvalid) complain(shell, 'nothing was written:');
    throw error;
  });
  const goes_on = await broker(config, options, shell);
  if (!goes_on || shell.signal.aborted) return exit.failed;
  const { password, ca_file, cert_file, key_file, ...answers } = asked;
  const places = await storeSecrets(file, { password, ca_file, cert_file, key_file }, shell);
  if (before) say(shell, `the file that was there is kept as ${await keepBefore(file)}`);
  await writeConfig(file, configText({ ...answers, ...places }, found)).catch(unwritable(file));
  say(shell, `${file} is written`);
  return finish(file, shell);
}

/** Tells how the broker takes the kit; false when the person wants nothing written. A kit that is set up indoors is online later. */
async function broker(config: Config, options: SetupOptions, shell: Shell): Promise<boolean> {
  if (!options.try || config.broker === undefined || config.broker.url === no_broker) return true;
  say(shell, `trying ${config.broker.url} ...`);
  const findings = await tryBroker(config, shell.signal);
  const paint = painter(shell);
  say(shell, ...findings.map((finding) => `  ${findingLine(finding, paint)}`));
  if (gravest(findings) !== 'fail') return true;
  if (!options.ask || !shell.ask) {
    complain(
      shell,
      'the broker does not take this kit yet, see above; the configuration is written all the same',
    );
    return true;
  }
  const answer = await shell.ask('the broker does not take this kit yet; write it all the same? [yes]: ', {
    hidden: false,
  });
  if (/^(?:y|yes|)$/iu.test(answer)) return true;
  complain(shell, 'nothing was written');
  return false;
}

async function lookAround(seconds: number, isBusy: boolean, shell: Shell): Promise<readonly Found[]> {
  if (seconds === 0) return [];
  if (isBusy) say(shell, 'kit-connector runs and has its ports: what it hears already is not found again');
  say(shell, `looking for devices for ${seconds} s ...`);
  const found = await scan(drivers, seconds * 1_000, shell.signal);
  const paint = painter(shell);
  for (const { what, complete } of found) {
    say(shell, `  ${complete ? paint('good', 'found') : paint('warn', 'maybe')}  ${plain(what)}`);
  }
  return found;
}

async function finish(file: string, shell: Shell): Promise<number> {
  const code = await check(file, shell).catch((error: unknown) => {
    if (!(error instanceof ConfigInvalid)) throw error;
    complain(shell, ...error.faults);
    return exit.config;
  });
  if (code === exit.ok) {
    const { drivers: configured } = await readConfig(file, { drivers, credentials_dir: undefined });
    const isDefault = file === config_file_default;
    const start = isDefault ? 'systemctl restart kit-connector' : `kit-connector run --config ${file}`;
    const look = isDefault ? 'kit-connector doctor' : `kit-connector doctor --config ${file}`;
    say(shell, `next: ${start}, then ${look} (${configured.length} drivers)`);
  }
  return code;
}

type Secrets = Pick<Asked, 'password' | 'ca_file' | 'cert_file' | 'key_file'>;

/** Answers what the configuration has to name. The service of the package cannot read what root keeps for itself: there systemd hands it over. */
async function storeSecrets(
  config_file: string,
  { password, ...files }: Secrets,
  shell: Shell,
): Promise<Omit<Secrets, 'password'> & Pick<Answers, 'password_file'>> {
  const isService = config_file === config_file_default && getuid?.() === 0 && existsSync(credential_store);
  const stored = async (name: string, text: string): Promise<string> => {
    const path = isService ? join(credential_store, `${prefix}${name}`) : join(dirname(config_file), name);
    await writeSecret(path, text).catch(unwritable(path));
    say(shell, `${path} is written`);
    return path;
  };
  const password_file = password === undefined ? undefined : await stored('mqtt-password', password);
  if (!isService) return { password_file, ...files };
  const { ca_file, cert_file, key_file } = files;
  const named = { 'mqtt-ca': ca_file, 'mqtt-cert': cert_file, 'mqtt-key': key_file };
  for (const [name, path] of Object.entries(named)) {
    if (path !== undefined) await stored(name, (await readFile(path, 'utf8')).trimEnd());
  }
  return { password_file: undefined, ca_file: undefined };
}
/** systemd hands them to the service, and to nobody else. */
const prefix = 'kit-connector.';
