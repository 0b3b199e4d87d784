/** `kit-connector setup`: asks for settings or takes flags, scans for devices, and writes a valid configuration. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { drivers } from '../../drivers/index.ts';
import {
  config_file_default,
  controlSocket,
  readConfig,
  readControlSocket,
  readStatePlace,
} from '../config/config.ts';
import { machineFacts, no_kit_id, readKitId } from '../config/identity.ts';
import { runtime_dir_default } from '../config/schema.ts';
import { ConfigInvalid } from '../errors.ts';
import { isAnswered } from '../local/server.ts';
import { check } from './check.ts';
import { plain } from './doctor/finding.ts';
import { credential_store } from './doctor/stored-secrets.ts';
import { settleIdentity } from './kit-identity.ts';
import { answersOf, type SetupAnswers } from './setup/answers.ts';
import { confirmed, type ConfirmOptions } from './setup/confirm.ts';
import { keepBefore, readBefore, writeConfig, writeSecret } from './setup/files.ts';
import { scan } from './setup/scan.ts';
import { type Answers, configText, type Found } from './setup/text.ts';
import { complain, exit, painter, say, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { unwritable } from './unwritable.ts';

export interface SetupOptions extends ConfirmOptions {
  readonly config: string;
  /** Seconds; 0: no scan. */
  readonly scan: number;
  readonly force?: true;
}

/**
 * Exit code 64 when the file exists and may not be replaced, 78 when the answers have faults, 1 when the broker rejects
 * the login without a confirmation; then no file is written.
 */
export async function setup(options: SetupOptions, shell: Shell): Promise<number> {
  const file = resolve(options.config);
  const before = await readBefore(file).catch(unwritable(file));
  if (before?.isOwn && !options.force) {
    complain(shell, texts.configuration_exists(file));
    return exit.usage;
  }
  const kept = await idsOf(file, options, before?.kit_id);
  const first = await answersOf(options, { kit_id: kept.offered }, shell);
  const socket = await readControlSocket(file).catch(() => controlSocket(runtime_dir_default));
  const found = await lookAround(options.scan, await isAnswered(socket), shell);
  if (shell.signal.aborted) return exit.failed;
  const asked = await confirmed(first, { file, found, options }, shell);
  if (asked === undefined || shell.signal.aborted) return exit.failed;
  if (before) say(shell, texts.previous_kept(await keepBefore(file)));
  await write(
    file,
    { ...asked, kit_id: asked.kit_id === kept.omitted ? undefined : asked.kit_id },
    found,
    shell,
  );
  return finish(file, shell);
}

type Written = Omit<SetupAnswers, 'kit_id'> & Pick<Answers, 'kit_id'>;

async function write(file: string, asked: Written, found: readonly Found[], shell: Shell): Promise<void> {
  const { password, ca_file, cert_file, key_file, ...answers } = asked;
  const places = await storeSecrets(file, { password, ca_file, cert_file, key_file }, shell);
  await writeConfig(file, configText({ ...answers, ...places }, found)).catch(unwritable(file));
  say(shell, `${file} written`);
}

interface KitIds {
  /** The default of the question, or the value without questions. */
  readonly offered: string;
  /** Omitted from the file, since the service stores it beside its buffer. */
  readonly omitted: string | undefined;
}

/**
 * The service of the package stores the id beside its buffer unless the file or a flag names one. It is created here if the
 * service has not started yet; in an image that is being built there is none.
 */
async function idsOf(file: string, { kitId, stateDir }: SetupOptions, known?: string): Promise<KitIds> {
  const named: KitIds = { offered: known ?? randomUUID(), omitted: undefined };
  if (file !== config_file_default || kitId !== undefined || known !== undefined) return named;
  const facts = await machineFacts();
  if (!facts.isBooted) return { offered: no_kit_id, omitted: no_kit_id };
  const state_dir = stateDir ?? (await readStatePlace(file).catch(() => undefined))?.state_dir;
  if (state_dir === undefined) return named;
  await settleIdentity({ file, state_dir, hasOwnId: false }, facts);
  const kept = await readKitId(state_dir);
  return { offered: kept ?? named.offered, omitted: kept };
}

async function lookAround(seconds: number, isBusy: boolean, shell: Shell): Promise<readonly Found[]> {
  if (seconds === 0) return [];
  if (isBusy) say(shell, texts.daemon_is_running);
  say(shell, texts.scanning(seconds));
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
    const start = isDefault ? texts.restart_service : texts.run_daemon(file);
    const look = isDefault ? 'kit-connector doctor' : texts.run_doctor(file);
    say(shell, texts.next_steps(start, look, configured.length));
  }
  return code;
}

type Secrets = Pick<SetupAnswers, 'password' | 'ca_file' | 'cert_file' | 'key_file'>;

/** Returns the paths for the configuration. The service of the package cannot read files of root: systemd passes it the secrets as credentials. */
async function storeSecrets(
  config_file: string,
  { password, ...files }: Secrets,
  shell: Shell,
): Promise<Omit<Secrets, 'password'> & Pick<Answers, 'password_file'>> {
  const isService = config_file === config_file_default && getuid?.() === 0 && existsSync(credential_store);
  const stored = async (name: string, text: string): Promise<string> => {
    const path = isService ? join(credential_store, `${prefix}${name}`) : join(dirname(config_file), name);
    await writeSecret(path, text).catch(unwritable(path));
    say(shell, `${path} written`);
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
/** systemd passes files with this prefix to the service only. */
const prefix = 'kit-connector.';
