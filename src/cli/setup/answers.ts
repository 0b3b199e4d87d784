/** Collects the settings for setup from flags, and asks for the missing ones. An invalid answer is asked for again. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { no_broker } from '../../kit/config/broker.ts';
import { no_kit_id } from '../../kit/config/identity.ts';
import { type BrokerProfile, profileOf } from '../../platform/broker-profiles.ts';
import { printable } from '../../platform/foreign-text.ts';
import { texts as file_texts } from '../../platform/texts.ts';
import { complain, say, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import { type Answers, withoutUnknown } from './text.ts';
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
export async function answersOf(
  flags: SetupFlags,
  offered: Offered,
  shell: Shell,
  needs = no_needs,
): Promise<SetupAnswers> {
  if (flags.ask && shell.ask) say(shell, texts.how_to_answer);
  return withBack(flags.ask ? shell.ask : undefined, async (ask) =>
    collect(flags, { offered, needs, ask }, shell),
  );
}

interface Asking {
  readonly offered: Offered;
  readonly needs: Needs;
  readonly ask: Shell['ask'];
}

async function collect(
  flags: SetupFlags,
  { offered, needs, ask }: Asking,
  shell: Shell,
): Promise<SetupAnswers> {
  const question = questionOf(ask, shell);
  const kit_id = flags.kitId ?? (await idOf(offered, question));
  const { kit_name: offered_label = '' } = offered;
  const kit_name = flags.kitName ?? (await question(texts.ask_kit_name, offered_label));
  const login = await loginOf(flags, { ...offered, kit_id }, question);
  const kept = login.broker_url === offered.broker_url ? offered : withoutFiles(offered);
  const files = await certificatesOf(login.broker_url, filesOf(flags, kept), needs, question);
  const hasPassword = login.broker_url !== no_broker && !(login.username === '' && files.cert_file);
  return {
    kit_id,
    kit_name: kit_name || undefined,
    ...login,
    ...files,
    ...(await passwordOf(flags, hasPassword ? ask : undefined, kept)),
    // The daemon starts in another folder.
    state_dir: flags.stateDir === undefined ? offered.state_dir : resolve(flags.stateDir),
    runtime_dir: flags.runtimeDir === undefined ? offered.runtime_dir : resolve(flags.runtimeDir),
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

/** Files that a broker turned out to need. */
export interface Needs {
  readonly ca: boolean;
  readonly certificate: boolean;
}

export const no_needs: Needs = { ca: false, certificate: false };

/** Asks for the certificate that some clouds expect, and for what else is needed. */
async function certificatesOf(
  broker_url: string,
  files: Files,
  needs: Needs,
  question: Question,
): Promise<Files> {
  const fileOf = async (words: string, before: string | undefined): Promise<string | undefined> => {
    const answer = await question(words, before ?? '');
    return answer === '' || answer === no_file ? undefined : resolve(answer);
  };
  const profile = profileAt(broker_url);
  const ca_file = needs.ca ? await fileOf(texts.ask_ca, files.ca_file) : files.ca_file;
  const isExpected = profile?.login === 'certificate' && files.cert_file === undefined;
  if (!needs.certificate && !isExpected) return { ...files, ca_file };
  const cert_file = await fileOf(texts.ask_certificate(profile?.name ?? texts.the_broker), files.cert_file);
  if (cert_file === undefined) return { ca_file, cert_file, key_file: undefined };
  return { ca_file, cert_file, key_file: await fileOf(texts.ask_key, files.key_file) };
}
const no_file = 'none';

/** Asks for the files alone. */
export async function filesAgain(before: SetupAnswers, needs: Needs, shell: Shell): Promise<SetupAnswers> {
  return withBack(shell.ask, async (ask) => ({
    ...before,
    ...(await certificatesOf(before.broker_url, before, needs, questionOf(ask, shell))),
  }));
}

/** In an image no id is asked for: each kit flashed with it creates its own. */
async function idOf({ kit_id }: Offered, question: Question): Promise<string> {
  return kit_id === no_kit_id ? no_kit_id : question('kit id', kit_id, noUuid);
}

/**
 * Asks again, also for settings of flags; the previous answers are the defaults. `login`: for the login alone, the rest stays. Files are asked
 * for where there are some, or were needed.
 */
export async function answersAgain(
  { ask, login, broker, kitId, kitName, stateDir, runtimeDir }: SetupFlags & { readonly login?: true },
  before: SetupAnswers,
  { shell, needs }: { readonly shell: Shell; readonly needs: Needs },
): Promise<SetupAnswers> {
  const kept = { ask, ...withoutUnknown({ stateDir, runtimeDir }) };
  const fixed = login ? { ...kept, ...withoutUnknown({ broker, kitId, kitName }) } : kept;
  const again = {
    ca: needs.ca || before.ca_file !== undefined,
    certificate: needs.certificate || before.cert_file !== undefined,
  };
  return answersOf(fixed, before, shell, again);
}

/** Runs questions so that the answer "<" goes back to the one before; the earlier answers are given again. */
async function withBack<T>(asks: Shell['ask'], questions: (ask: Shell['ask']) => Promise<T>): Promise<T> {
  if (!asks) return questions(undefined);
  const given: string[] = [];
  for (;;) {
    const waiting = [...given];
    try {
      return await questions(async (words, how) => {
        const known = waiting.shift();
        if (known !== undefined) return known;
        const answer = await asks(words, how);
        if (answer === back) throw new WentBack();
        given.push(answer);
        return answer;
      });
    } catch (error) {
      if (!(error instanceof WentBack)) throw error;
      given.pop();
    }
  }
}
const back = '<';
class WentBack extends Error {}

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
