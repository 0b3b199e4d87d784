/** Validates the answers and lets the user correct them; the previous answers are the defaults. */
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Config, readConfig } from '../../kit/config/config.ts';
import { no_broker } from '../../kit/config/broker.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { mostSevere, type Finding, ok, warn } from '../doctor/finding.ts';
import { finding_column, findingLine } from '../doctor.ts';
import { fold } from '../terminal/width.ts';
import { columnsOf, complain, painter, say, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import {
  answersAgain,
  filesAgain,
  type Needs,
  no_needs,
  type SetupAnswers,
  type SetupFlags,
} from './answers.ts';
import { type Found, configText } from './text.ts';
import { unwritable } from './files.ts';
import { drivers } from '../../../drivers/index.ts';
import { no_kit_id } from '../../kit/config/identity.ts';
import { localClient } from '../../kit/local/client.ts';
import { isAnswered } from '../../kit/local/server.ts';
import { within } from '../../platform/time.ts';
import { checkBrokerSession, useOfKit } from '../doctor/broker-session.ts';
import { checkNetwork } from '../doctor/network.ts';
import { texts as doctor_texts } from '../doctor/texts.ts';
import { certificate_missing, certificate_refused } from '../../mqtt/faults.ts';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

/** Limit of corrections. */
const rounds_max = 5;

export interface ConfirmOptions extends SetupFlags {
  /** Whether to connect to the broker before any file is written. */
  readonly try: boolean;
  /** Only the login is asked for. */
  readonly login?: true;
}

export interface Draft {
  readonly file: string;
  /** The text of a file that a user wrote. */
  readonly before: string | undefined;
  /** What was configured until now. */
  readonly kept: Partial<Omit<SetupAnswers, 'kit_id'>>;
  readonly found: readonly Found[];
  readonly options: ConfirmOptions;
}

/**
 * Returns the answers to write; undefined when the user cancelled, or when the broker rejects the kit and questions are off.
 * Throws `ConfigInvalid` for invalid answers when questions are off.
 */
export async function confirmed(
  first: SetupAnswers,
  how: Draft,
  shell: Shell,
): Promise<SetupAnswers | undefined> {
  const { options } = how;
  const ask = options.ask ? shell.ask : undefined;
  let asked = first;
  let needs = no_needs;
  for (let round = 0; round < rounds_max && !shell.signal.aborted; round += 1) {
    const fault = await faultOf(asked, how, shell);
    if (fault === undefined || shell.signal.aborted) return asked;
    if (!ask) return unasked(asked, fault, shell);
    const known = needs;
    needs = bothOf(known, fault.needs);
    if (!isDeepStrictEqual(needs, known)) {
      asked = await filesAgain(asked, fault.needs, shell);
      continue;
    }
    if (fault.isWritable && (await isYes(ask, texts.ask_write_anyway(fault.words), 'no'))) return asked;
    if (!(await isYes(ask, texts.ask_correct, 'yes'))) break;
    asked = await answersAgain(options, asked, { shell, needs });
  }
  complain(shell, texts.nothing_written);
  return undefined;
}

/** Without questions: a kit that is offline is written, and one that is refused is not. */
function unasked(asked: SetupAnswers, fault: Fault, shell: Shell): SetupAnswers | undefined {
  if (fault.needs.ca) complain(shell, texts.needs_ca);
  if (fault.needs.certificate) complain(shell, texts.needs_certificate);
  complain(shell, fault.isRefusal ? texts.not_written(fault.words) : texts.written_anyway(fault.words));
  return fault.isRefusal ? undefined : asked;
}

function bothOf(one: Needs, other: Needs): Needs {
  return { ca: one.ca || other.ca, certificate: one.certificate || other.certificate };
}

interface Fault {
  readonly words: string;
  /** The daemon can start with it: a kit that is set up offline connects later. */
  readonly isWritable: boolean;
  /** The broker rejected the login: a retry does not help. */
  readonly isRefusal: boolean;
  readonly needs: Needs;
}

async function faultOf(asked: SetupAnswers, how: Draft, shell: Shell): Promise<Fault | undefined> {
  const config = await draft(asked, how, shell);
  if (config === undefined) {
    return { words: texts.answers_faulty, isWritable: false, isRefusal: false, needs: no_needs };
  }
  if (!how.options.try) return undefined;
  const isKnown = await isSameLogin(asked, how.kept);
  return brokerFault(config, { place: passwordPlace(asked, how.options), isKnown }, shell);
}

/** While the daemon is connected its login cannot be tried a second time, and needs it only when it has changed. */
async function isSameLogin(asked: SetupAnswers, kept: Draft['kept']): Promise<boolean> {
  const textOf = async (path: string | undefined): Promise<string | undefined> =>
    path === undefined ? undefined : readTextUpTo(path, table_bytes_max).then((text) => text.trimEnd());
  const isSame = async (key: 'cert_file' | 'key_file' | 'password_file'): Promise<boolean> =>
    asked[key] === kept[key] || (await textOf(asked[key])) === (await textOf(kept[key]));
  const { password } = asked;
  const isPasswordKept =
    password === undefined ? await isSame('password_file') : password === (await textOf(kept.password_file));
  return (
    isPasswordKept &&
    asked.broker_url === kept.broker_url &&
    asked.username === kept.username &&
    (await isSame('cert_file')) &&
    (await isSame('key_file'))
  );
}

type Ask = NonNullable<Shell['ask']>;

async function isYes(ask: Ask, words: string, otherwise: 'yes' | 'no'): Promise<boolean> {
  const answer = (await ask(`${words} [${otherwise}]: `, { hidden: false })) || otherwise;
  return /^y(?:es)?$/iu.test(answer);
}

/** The configuration that would be written; undefined, with every fault printed, when it is invalid and the user can correct it. */
async function draft(asked: SetupAnswers, how: Draft, shell: Shell): Promise<Config | undefined> {
  try {
    return await readDraft(how, asked);
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error;
    complain(shell, texts.nothing_written_because);
    if (!how.options.ask || !shell.ask) throw error;
    complain(shell, ...error.faults);
    return undefined;
  }
}

/** Where the technician corrects the password that was tried. */
function passwordPlace({ password, password_file }: SetupAnswers, { ask, passwordFile }: SetupFlags): string {
  if (password === undefined && password_file !== undefined) return password_file;
  return ask && passwordFile === undefined ? texts.typed_password_place : texts.password_file_place;
}

/** Prints the findings and returns a summary of the fault; undefined when the broker accepts the kit. */
async function brokerFault(
  config: Config,
  { place, isKnown }: { readonly place: string; readonly isKnown: boolean },
  shell: Shell,
): Promise<Fault | undefined> {
  if (config.broker === undefined || config.broker.url === no_broker) return undefined;
  say(shell, texts.connecting(config.broker.url));
  const findings = await tryBroker(config, place, shell.signal);
  const paint = painter(shell);
  const lines = findings.map((finding) => `  ${findingLine(finding, paint)}`);
  say(shell, ...lines.flatMap((line) => fold(line, columnsOf(shell.out), finding_column + 2)));
  const isUnchecked = findings.some(({ finding }) => finding === texts.login_in_use);
  if (isUnchecked && !isKnown)
    return { words: texts.login_unchecked, isWritable: true, isRefusal: true, needs: no_needs };
  if (mostSevere(findings) !== 'fail') return undefined;
  const needs = needsOf(findings);
  const isRefusal =
    needs.ca ||
    needs.certificate ||
    findings.some(({ what, level }) => what === 'broker login' && level === 'fail');
  const words = isRefusal ? texts.broker_rejected_login : texts.broker_unreachable;
  return { words, isWritable: true, isRefusal, needs };
}

/** What the broker let be known by ending the handshake, or by its own certificate. */
function needsOf(findings: readonly Finding[]): Needs {
  const faults = findings.filter(({ level }) => level === 'fail');
  return {
    ca: faults.some(({ remedy }) => remedy === doctor_texts.set_ca(ca_flag)),
    certificate: faults.some(
      ({ finding }) => finding.includes(certificate_missing) || finding.includes(certificate_refused),
    ),
  };
}
const ca_flag = '--ca';

// Validates the configuration before setup writes it, and checks that the broker accepts the kit.

const trial_ms = 8_000;
const grace_ms = 2_000;
const secret_mode = 0o600;

/** The configuration as it would be read from `file`. Throws `ConfigInvalid` with every fault, as if the file were written. */
async function readDraft(
  { file, before, found }: Draft,
  { password, kit_id, password_file: kept, ...answers }: SetupAnswers,
): Promise<Config> {
  // Beside the file: paths in it may be relative.
  const draft = `${file}.${randomUUID()}`;
  const typed = `${draft}.password`;
  try {
    const password_file = password === undefined ? kept : typed;
    if (password !== undefined)
      await writeFile(typed, `${password}\n`, { mode: secret_mode }).catch(unwritable(file));
    const text = configText({ ...answers, kit_id: kit_id || undefined, password_file }, found, before);
    await writeFile(draft, text, { mode: secret_mode }).catch(unwritable(file));
    return await readConfig(draft, { drivers, credentials_dir: undefined }).catch((error: unknown) => {
      if (!(error instanceof ConfigInvalid)) throw error;
      throw new ConfigInvalid(error.faults.map((fault) => fault.replaceAll(draft, file)));
    });
  } finally {
    await rm(draft, { force: true });
    await rm(typed, { force: true });
  }
}

/** Whether a running daemon has a broker session, or may have one. That of a new package has no broker configured. */
async function hasSession(socket: string, signal: AbortSignal): Promise<boolean> {
  if (!(await isAnswered(socket))) return false;
  const report = await localClient(socket, signal)
    .status()
    .catch(() => undefined);
  return report?.uplink.broker !== no_broker;
}

/**
 * Connects to the broker and returns findings; none without a broker. Takes 10 s at most, and never rejects. Remedies name
 * `password_place`, since the files are not in their final places yet.
 */
async function tryBroker(
  config: Config,
  password_place: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { broker, kit_id } = config;
  if (!broker || broker.url === no_broker) return [];
  if (kit_id === no_kit_id) return [ok('broker login', texts.login_needs_id)];
  const places = { password: password_place, ca: ca_flag, isBlind: false };
  const over = AbortSignal.any([signal, AbortSignal.timeout(trial_ms)]);
  const look = async (): Promise<readonly Finding[]> => {
    const way = await checkNetwork(broker, over, places);
    if (mostSevere(way) === 'fail') return way;
    if (await hasSession(config.control_socket, over)) {
      return [...way, ok('broker login', texts.login_in_use)];
    }
    return [...way, ...(await checkBrokerSession(useOfKit(kit_id), broker, over, places))];
  };
  const found = await within(trial_ms + grace_ms, look(), signal);
  return found ?? [warn('broker', 'timed out', texts.run_doctor_later)];
}
