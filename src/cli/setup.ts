/** `kit-connector setup`: asks for settings or takes flags, scans for devices, and writes a valid configuration. */
import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { z } from 'zod';
import { drivers } from '../../drivers/index.ts';
import {
  config_file_default,
  controlSocket,
  readConfig,
  readControlSocket,
  readStatePlace,
} from '../kit/config/config.ts';
import { machineFacts, no_kit_id, readKitId } from '../kit/config/identity.ts';
import { runtime_dir_default, state_dir_default } from '../kit/config/schema.ts';
import { ConfigInvalid, hasCode } from '../platform/errors.ts';
import { isAnswered } from '../kit/local/server.ts';
import { check } from './check.ts';
import { plain } from './doctor/finding.ts';
import { credential_store } from './doctor/stored-secrets.ts';
import { settleIdentity } from './kit-identity.ts';
import { type Enrolled, flagsOf } from './setup/enrolment.ts';
import { answersOf, type SetupAnswers } from './setup/answers.ts';
import { confirmed, type ConfirmOptions, type Draft } from './setup/confirm.ts';
import {
  keepBefore,
  type SecretFiles,
  storedFile,
  writeConfig,
  writeSecret,
  unwritable,
} from './setup/files.ts';
import { type Answers, configText, type Found } from './setup/text.ts';
import { complain, exit, painter, say, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { readTextUpTo, readTypedUpTo, table_bytes_max } from '../platform/bounded-file.ts';
import { no_broker } from '../kit/config/broker.ts';
import { parseSource, file_bytes_max } from '../kit/config/source.ts';
import type { Suggest } from '../toolkit/driver/suggest.ts';
import { cleanText } from '../platform/foreign-text.ts';
import { within } from '../platform/time.ts';

interface SetupOptions extends ConfirmOptions {
  readonly config: string;
  /** File of `service enrol`. */
  readonly from?: string;
  /** Seconds; 0: no scan. */
  readonly scan: number;
  readonly force?: true;
}

/**
 * Exit code 64 when the file exists and may not be replaced, 78 when the answers have faults, 1 when the broker rejects
 * the login without a confirmation; then no file is written.
 */
export async function setup(given: SetupOptions, shell: Shell): Promise<number> {
  const file = resolve(given.config);
  // Before questions: without the right to write, all answers are for nothing.
  await access(dirname(file), constants.W_OK).catch(unwritable(file));
  const before = await readBefore(file, isOfService(file)).catch(unwritable(file));
  if (before?.isOwn && !given.force) {
    complain(shell, texts.configuration_exists(file));
    return exit.usage;
  }
  const { flags, placed } = await enrolled(given, file);
  let isWritten = false;
  try {
    isWritten = await settle({ ...given, ...flags }, { file, before }, shell);
  } finally {
    // The service has copies of its own, as every kit has of a password; a login that was not accepted leaves nothing.
    const isNeeded = (path: string): boolean =>
      isWritten && !isOfService(file) && path !== flags.passwordFile;
    await Promise.all(placed.map(async (path) => (isNeeded(path) ? undefined : rm(path, { force: true }))));
  }
  if (!isWritten && shell.signal.aborted) complain(shell, texts.cancelled);
  return isWritten ? finish(file, shell) : exit.failed;
}

/** Asks, tries and writes; false: nothing was written. */
async function settle(
  options: SetupOptions,
  { file, before }: { readonly file: string; readonly before: Before | undefined },
  shell: Shell,
): Promise<boolean> {
  const known = before?.offered ?? {};
  const kept = await idsOf(file, options, known.kit_id);
  const first = await answersOf(options, { ...known, kit_id: kept.offered }, shell);
  const socket = await readControlSocket(file).catch(() => controlSocket(runtime_dir_default));
  const found = await lookAround(options.scan, await isAnswered(socket), shell);
  const draft = { file, before: before?.text, kept: known, found, options };
  const asked = shell.signal.aborted ? undefined : await confirmed(first, draft, shell);
  if (asked === undefined || shell.signal.aborted) return false;
  if (before) say(shell, texts.previous_kept(await keepBefore(file)));
  const kit_id = asked.kit_id === kept.omitted ? undefined : asked.kit_id;
  await write({ ...asked, kit_id }, draft, shell);
  return true;
}

async function enrolled({ from }: SetupOptions, file: string): Promise<Enrolled> {
  return from === undefined ? { flags: {}, placed: [] } : flagsOf(from, file);
}

async function write(
  { password, ...answers }: Omit<SetupAnswers, 'kit_id'> & Answers,
  { file, before, kept, found, options }: Draft & { readonly options: SetupOptions },
  shell: Shell,
): Promise<void> {
  const destination = { file, isService: isOfService(file), kept, options };
  const places = await storeSecrets({ ...answers, password }, destination, shell);
  await writeConfig(file, configText({ ...answers, ...places }, found, before)).catch(unwritable(file));
  say(shell, `${file} written`);
}

/** `kit-connector login`: the same for a configured kit, of which only user name, password and certificate are asked for. */
export async function login(
  options: ConfirmOptions & { readonly config: string },
  shell: Shell,
): Promise<number> {
  const file = resolve(options.config);
  const before = await readBefore(file, isOfService(file));
  if (!before?.isOwn) {
    complain(shell, texts.no_broker_yet(file));
    return exit.usage;
  }
  const { kit_id: kitId, kit_name: kitName = '', broker_url: broker } = before.offered;
  const known = {
    ...(kitId === undefined ? {} : { kitId }),
    kitName,
    ...(broker === undefined ? {} : { broker }),
  };
  return setup({ ...options, ...known, scan: 0, force: true, login: true }, shell);
}

/** systemd passes the secrets to the service of the package, and root writes them. */
function isOfService(file: string): boolean {
  return file === config_file_default && getuid?.() === 0 && existsSync(credential_store);
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
  const place = await readStatePlace(file).catch(() => undefined);
  // Without a configuration, as after `rm config.yaml`, the kit still is the one that its buffer belongs to.
  const usual = existsSync(state_dir_default) ? state_dir_default : undefined;
  const state_dir = stateDir ?? place?.state_dir ?? usual;
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
  const code = await check(undefined, { config: file }, shell).catch((error: unknown) => {
    if (!(error instanceof ConfigInvalid)) throw error;
    complain(shell, ...error.faults);
    return exit.config;
  });
  if (code === exit.ok) {
    const { drivers: configured } = await readConfig(file, { drivers, credentials_dir: undefined });
    const isDefault = file === config_file_default;
    // Containers have no systemd.
    const restart = existsSync('/run/systemd/system') ? texts.restart_service : texts.restart_daemon;
    const start = isDefault ? restart : texts.run_daemon(file);
    const look = isDefault ? 'kit-connector doctor' : texts.run_doctor(file);
    say(shell, texts.next_steps(start, look, configured.length));
  }
  return code;
}

interface Destination {
  readonly file: string;
  readonly isService: boolean;
  readonly kept: Draft['kept'];
  readonly options: SetupOptions;
}

/**
 * Stores what was typed or named by a flag, and returns the paths for the configuration; what was configured stays where it is.
 * The service of the package cannot read files of root: systemd passes it the secrets as credentials, which the file leaves out.
 */
async function storeSecrets(
  { password, password_file, ca_file, cert_file, key_file }: Omit<SetupAnswers, 'kit_id'>,
  { file, isService, kept, options }: Destination,
  shell: Shell,
): Promise<SecretFiles> {
  const store = async (key: keyof SecretFiles, text: string): Promise<string> => {
    const path = isService ? storedFile(key) : join(dirname(file), 'mqtt-password');
    await writeSecret(path, text).catch(unwritable(path));
    say(shell, `${path} written`);
    return path;
  };
  const copy = async (key: keyof SecretFiles, path: string | undefined, flag: string | undefined) =>
    isService && path !== undefined && (flag !== undefined || path !== kept[key])
      ? store(key, (await readTypedUpTo(path, table_bytes_max)).trimEnd())
      : path;
  const files: SecretFiles = {
    password_file: password === undefined ? password_file : await store('password_file', password),
    ca_file: await copy('ca_file', ca_file, options.ca),
    cert_file: await copy('cert_file', cert_file, options.cert),
    key_file: await copy('key_file', key_file, options.key),
  };
  const named = (key: keyof SecretFiles) => (files[key] === storedFile(key) ? undefined : files[key]);
  return {
    password_file: named('password_file'),
    ca_file: named('ca_file'),
    cert_file: named('cert_file'),
    key_file: named('key_file'),
  };
}

// What an existing configuration says, which setup proposes again: its values are the defaults of the questions.

const text = z.string().optional().catch(undefined);
/** What is wrong in it is asked for as if it were missing. */
const readable = z.object({
  kit_id: z.uuid().optional().catch(undefined),
  kit_name: text,
  state_dir: text,
  runtime_dir: text,
  broker: z
    .object({
      url: z.string(),
      username: text,
      password_file: text,
      ca_file: text,
      cert_file: text,
      key_file: text,
    })
    .optional()
    .catch(undefined),
});

export interface Before {
  /** It names a broker or cannot be parsed: a user wrote it. */
  readonly isOwn: boolean;
  /** Of such a file, as far as it can be parsed: what setup does not ask for stays. */
  readonly text: string | undefined;
  /** With the id, so that the kit keeps its identity. */
  readonly offered: Partial<Omit<SetupAnswers, 'kit_id'>> & { readonly kit_id?: string | undefined };
}

/** Undefined when the file does not exist. `isService`: secrets that it leaves out are in the store of systemd. */
export async function readBefore(file: string, isService: boolean): Promise<Before | undefined> {
  const source = await readTextUpTo(file, file_bytes_max).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (source === undefined) return undefined;
  try {
    const { broker, ...kit } = readable.parse(parseSource(file, source).value);
    const { url, username, ...named } = broker ?? { url: no_broker };
    const files = filesOf(named, dirname(file), isService);
    const isOwn = broker?.url !== no_broker;
    return {
      isOwn,
      text: isOwn ? source : undefined,
      offered: { ...kit, broker_url: url, username, ...files },
    };
  } catch {
    return { isOwn: true, text: undefined, offered: {} };
  }
}

/** The configuration takes paths relative to its own directory. */
function filesOf(named: Partial<SecretFiles>, dir: string, isService: boolean): SecretFiles {
  const fileOf = (key: keyof SecretFiles): string | undefined => {
    const path = named[key];
    if (path !== undefined) return resolve(dir, path);
    const stored = storedFile(key);
    return isService && existsSync(stored) ? stored : undefined;
  };
  return {
    password_file: fileOf('password_file'),
    ca_file: fileOf('ca_file'),
    cert_file: fileOf('cert_file'),
    key_file: fileOf('key_file'),
  };
}

// Scans for devices with every driver that supports it, concurrently, for a limited time.

export interface Scanner {
  readonly name: string;
  readonly suggest?: Suggest;
}

/** A driver that exceeds the limit by this time has found no device. */
const grace_ms = 1_500;

/** Never rejects: a failed scan of a driver finds no device. */
export async function scan(
  drivers: readonly Scanner[],
  ms: number,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  const looks = drivers.map(async ({ name, suggest }): Promise<readonly Found[]> => {
    if (!suggest) return [];
    const suggested = suggest(over).catch(() => []);
    const found = (await within(ms + grace_ms, suggested, signal)) ?? [];
    return found.map(({ what, options, complete }) => ({
      driver: name,
      what: cleanText(what),
      options,
      complete,
    }));
  });
  return (await Promise.all(looks)).flat();
}
