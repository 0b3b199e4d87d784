/** Collects the settings for setup from flags, and asks for the missing ones. An invalid answer is asked for again. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { no_broker } from '../../kit/config/broker.ts';
import { no_kit_id } from '../../kit/config/identity.ts';
import { type BrokerProfile, profileOf } from '../../platform/broker-profiles.ts';
import { printable } from '../../platform/foreign-text.ts';
import { texts as file_texts } from '../../platform/texts.ts';
import { complain, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import type { Answers } from './text.ts';
import { readTypedUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

export interface SetupFlags {
  readonly broker?: string;
  readonly username?: string;
  /** File that holds the password; it is copied. */
  readonly passwordFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly kitId?: string;
  readonly kitName?: string;
  readonly stateDir?: string;
  readonly runtimeDir?: string;
  readonly ask: boolean;
}

export interface SetupAnswers extends Omit<Answers, 'kit_id'> {
  /** `no_kit_id`: created at the first start. */
  readonly kit_id: string;
  /** Typed or of a flag; undefined: that of `password_file` is kept, if there is one. */
  readonly password: string | undefined;
}

/** Defaults of the questions, and of what is not asked. */
export type Offered = Pick<SetupAnswers, 'kit_id'> & Partial<SetupAnswers>;

/** Times that a question is repeated. */
const attempts_max = 5;

/** Returns the fault of an answer. */
type Objection = (answer: string) => string | undefined;
type Files = Pick<SetupAnswers, 'ca_file' | 'cert_file' | 'key_file'>;
type Question = (words: string, otherwise: string, objection?: Objection) => Promise<string>;

/** Rejects when a file that is named cannot be read. */
export async function answersOf(flags: SetupFlags, offered: Offered, shell: Shell): Promise<SetupAnswers> {
  const ask = flags.ask ? shell.ask : undefined;
  const question = questionOf(ask, shell);
  const kit_id = flags.kitId ?? (await idOf(offered, question));
  const { kit_name: offered_label = '' } = offered;
  const kit_name = flags.kitName ?? (await question(texts.ask_kit_name, offered_label));
  const login = await loginOf(flags, { ...offered, kit_id }, question);
  const kept = login.broker_url === offered.broker_url ? offered : withoutFiles(offered);
  const files = await certificateOf(profileAt(login.broker_url), filesOf(flags, kept), question);
  const hasPassword = login.broker_url !== no_broker && !(login.username === '' && files.cert_file);
  return {
    kit_id,
    kit_name: kit_name || undefined,
    ...login,
    ...files,
    ...(await passwordOf(flags, hasPassword ? ask : undefined, kept)),
    state_dir: flags.stateDir ?? offered.state_dir,
    runtime_dir: flags.runtimeDir ?? offered.runtime_dir,
  };
}

/** Another broker is not given the password of the one before, nor checked against its authority. */
function withoutFiles(offered: Offered): Offered {
  return {
    ...offered,
    password_file: undefined,
    ca_file: undefined,
    cert_file: undefined,
    key_file: undefined,
  };
}

/** A user name that equals the kit id is omitted from the file. */
async function loginOf(
  flags: SetupFlags,
  offered: Offered,
  question: Question,
): Promise<Pick<SetupAnswers, 'broker_url' | 'username'>> {
  const { kit_id, broker_url: before = no_broker } = offered;
  const broker_url = flags.broker ?? (await question(texts.ask_broker, before, noBrokerAddress));
  const asksName = flags.username === undefined && broker_url !== no_broker;
  const profile = profileAt(broker_url);
  // A certificate is enough there.
  const isNameless = profile?.login === 'certificate' && profile.username === undefined;
  const otherwise = offered.username ?? (isNameless ? '' : kit_id);
  const username = asksName
    ? await question(texts.ask_username_of(profile?.name, profile?.username), otherwise)
    : flags.username;
  return { broker_url, username: username === kit_id ? undefined : username };
}

function profileAt(broker_url: string): BrokerProfile | undefined {
  return URL.canParse(broker_url) ? profileOf(new URL(broker_url).hostname) : undefined;
}

/** Asks for the certificate that some clouds expect. */
async function certificateOf(
  profile: BrokerProfile | undefined,
  files: Files,
  question: Question,
): Promise<Files> {
  if (profile?.login !== 'certificate' || files.cert_file !== undefined) return files;
  const cert_file = await question(texts.ask_certificate(profile.name), '');
  if (cert_file === '') return files;
  const key_file = await question(texts.ask_key, '');
  return { ...files, cert_file: resolve(cert_file), key_file: key_file ? resolve(key_file) : undefined };
}

/** In an image no id is asked for: each kit flashed with it creates its own. */
async function idOf({ kit_id }: Offered, question: Question): Promise<string> {
  return kit_id === no_kit_id ? no_kit_id : question('kit id', kit_id, noUuid);
}

/** Asks again, also for settings of flags; the previous answers are the defaults. */
export async function answersAgain(
  flags: SetupFlags,
  before: SetupAnswers,
  shell: Shell,
): Promise<SetupAnswers> {
  const { kitName, broker: _broker, username: _username, passwordFile: _passwordFile, ...kept } = flags;
  const name = before.kit_name ?? kitName ?? '';
  return answersOf({ ...kept, kitName: name }, before, shell);
}

function filesOf({ ca, cert, key }: SetupFlags, { ca_file, cert_file, key_file }: Offered): Files {
  const absolute = (path: string | undefined): string | undefined => path && resolve(path);
  return {
    ca_file: absolute(ca) ?? ca_file,
    cert_file: absolute(cert) ?? cert_file,
    key_file: absolute(key) ?? key_file,
  };
}

function questionOf(ask: Shell['ask'], shell: Shell): Question {
  return async (words, otherwise, objection = () => undefined) => {
    if (!ask) return otherwise;
    const shown = `${words}${otherwise === '' ? '' : ` [${printable(otherwise)}]`}: `;
    let answer = otherwise;
    for (let attempt = 0; attempt < attempts_max; attempt += 1) {
      answer = (await ask(shown, { hidden: false })) || otherwise;
      const fault = objection(answer);
      if (fault === undefined) break;
      complain(shell, fault);
    }
    return answer;
  };
}

function noUuid(answer: string): string | undefined {
  return z.uuid().safeParse(answer).success ? undefined : texts.invalid_kit_id(answer);
}

/** Detects typing errors; everything else is validated with the whole file. */
function noBrokerAddress(answer: string): string | undefined {
  const url = URL.canParse(answer) ? new URL(answer) : undefined;
  const isAddress = url !== undefined && /^(?:mqtt|ws)s?:$/u.test(url.protocol) && url.hostname !== '';
  return answer === no_broker || isAddress ? undefined : texts.invalid_broker(answer);
}

/** An empty answer keeps what was there: a password that was typed before, or the file that the configuration names. */
async function passwordOf(
  { passwordFile }: SetupFlags,
  ask: Shell['ask'],
  { password: before, password_file }: Offered,
): Promise<Pick<SetupAnswers, 'password' | 'password_file'>> {
  const words = before === undefined && password_file === undefined ? texts.empty_none : texts.empty_keeps;
  const text =
    passwordFile === undefined
      ? await ask?.(texts.ask_password(words), { hidden: true })
      : await readTypedUpTo(passwordFile, small_bytes_max).catch((error: unknown) => {
          throw new Error(`--password-file: ${passwordFile} ${file_texts.unreadable(error)}`, {
            cause: error,
          });
        });
  const password = text?.replace(/\r?\n$/u, '');
  return { password: password || before, password_file };
}
