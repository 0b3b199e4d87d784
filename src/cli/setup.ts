/** `kit-connector setup`: asks or takes flags, looks around for devices, and writes a configuration that works. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { drivers } from '../../drivers/index.ts';
import { config_file_default, readConfig } from '../config.ts';
import { no_broker } from '../config/broker.ts';
import { unreadable } from '../config/source.ts';
import { ConfigInvalid } from '../errors.ts';
import { check } from './check.ts';
import { plain } from './doctor/finding.ts';
import { credential_store } from './doctor/stored-secrets.ts';
import { keepBefore, readBefore, writeConfig, writeSecret } from './setup/files.ts';
import { scan } from './setup/scan.ts';
import { type Answers, configText, type Found } from './setup/text.ts';
import { complain, exit, painter, say, type Shell } from './shell.ts';
import { unwritable } from './unwritable.ts';

export interface SetupOptions {
  readonly config: string;
  readonly broker?: string;
  readonly username?: string;
  /** File that holds the password; it is copied. */
  readonly passwordFile?: string;
  readonly ca?: string;
  readonly kitId?: string;
  readonly kitName?: string;
  readonly stateDir?: string;
  readonly runtimeDir?: string;
  /** Seconds; 0: nobody looks. */
  readonly scan: number;
  readonly ask: boolean;
  readonly force?: true;
}

/** systemd hands it to the service, and to nobody else. */
const credential = 'kit-connector.mqtt-password';

/** Exit code 64 when the file is there and may not be replaced; else that of `check`. */
export async function setup(options: SetupOptions, shell: Shell): Promise<number> {
  const file = resolve(options.config);
  const before = await readBefore(file);
  if (before?.isOwn && !options.force) {
    complain(
      shell,
      `${file} is there already; change it, or let --force replace it (a copy is kept beside it)`,
    );
    return exit.usage;
  }
  const { password, ...answers } = await answersOf(options, before?.kit_id, shell);
  const found = await lookAround(options.scan, shell);
  if (shell.signal.aborted) return exit.failed;
  const password_file = password === undefined ? undefined : await storePassword(file, password, shell);
  if (before) say(shell, `the file that was there is kept as ${await keepBefore(file)}`);
  await writeConfig(file, configText({ ...answers, password_file }, found)).catch(unwritable(file));
  say(shell, `${file} is written`);
  return finish(file, shell);
}

async function lookAround(seconds: number, shell: Shell): Promise<readonly Found[]> {
  if (seconds === 0) return [];
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
    say(
      shell,
      `next: systemctl restart kit-connector, then kit-connector doctor (${configured.length} drivers)`,
    );
  }
  return code;
}

interface Asked extends Omit<Answers, 'password_file'> {
  readonly password: string | undefined;
}

type Question = (words: string, otherwise: string) => Promise<string>;

/** Flags come first; what they leave out is asked where somebody can answer. */
async function answersOf(options: SetupOptions, known_id: string | undefined, shell: Shell): Promise<Asked> {
  const ask = options.ask ? shell.ask : undefined;
  const question: Question = async (words, otherwise) =>
    (await ask?.(`${words}${otherwise === '' ? '' : ` [${otherwise}]`}: `, { hidden: false })) || otherwise;
  const kit_id = options.kitId ?? (await question('kit id', known_id ?? randomUUID()));
  const kit_name = options.kitName ?? (await question('name of the kit, for people', ''));
  return {
    kit_id,
    kit_name: kit_name === '' ? undefined : kit_name,
    state_dir: options.stateDir,
    runtime_dir: options.runtimeDir,
    ...(await brokerOf(options, kit_id, { ask, question })),
  };
}

interface Asking {
  readonly ask: Shell['ask'];
  readonly question: Question;
}

async function brokerOf(
  options: SetupOptions,
  kit_id: string,
  { ask, question }: Asking,
): Promise<Pick<Asked, 'broker_url' | 'username' | 'ca_file' | 'password'>> {
  const broker_url =
    options.broker ?? (await question('broker, such as mqtts://broker.example.com:8883', no_broker));
  const hasBroker = broker_url !== no_broker;
  const username =
    options.username ?? (hasBroker ? await question('user name at the broker', kit_id) : kit_id);
  return {
    broker_url,
    username: username === kit_id ? undefined : username,
    ca_file: options.ca === undefined ? undefined : resolve(options.ca),
    password: await passwordOf(options, hasBroker ? ask : undefined),
  };
}

async function passwordOf({ passwordFile }: SetupOptions, ask: Shell['ask']): Promise<string | undefined> {
  const text =
    passwordFile === undefined
      ? await ask?.('password at the broker (empty: none): ', { hidden: true })
      : await readFile(passwordFile, 'utf8').catch((error: unknown) => {
          throw new Error(`--password-file: ${passwordFile} ${unreadable(error)}`, { cause: error });
        });
  const password = text?.replace(/\r?\n$/u, '');
  return password === '' ? undefined : password;
}

/** Answers what the configuration has to name. The service of the package cannot read what root keeps for itself: there systemd hands it over. */
async function storePassword(
  config_file: string,
  password: string,
  shell: Shell,
): Promise<string | undefined> {
  const isService = config_file === config_file_default && getuid?.() === 0 && existsSync(credential_store);
  const path = isService ? join(credential_store, credential) : join(dirname(config_file), 'mqtt-password');
  await writeSecret(path, password).catch(unwritable(path));
  say(shell, `the password is written to ${path}`);
  return isService ? undefined : path;
}
