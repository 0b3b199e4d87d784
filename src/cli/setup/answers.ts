/** What setup has to know: from flags, and from a person for what they leave out. An answer that cannot be right is asked for again. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { no_broker } from '../../config/broker.ts';
import { unreadable } from '../../config/source.ts';
import { complain, type Shell } from '../shell.ts';
import type { Answers } from './text.ts';

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

export interface Asked extends Omit<Answers, 'password_file'> {
  readonly password: string | undefined;
}

/** So often is a person asked for the same thing. */
const attempts_max = 5;

/** Answers what is wrong with an answer. */
type Objection = (answer: string) => string | undefined;
type Question = (words: string, otherwise: string, objection?: Objection) => Promise<string>;

/** `known_id`: of the kit that is configured already. Rejects when a file that is named cannot be read. */
export async function answersOf(
  flags: SetupFlags,
  known_id: string | undefined,
  shell: Shell,
): Promise<Asked> {
  const ask = flags.ask ? shell.ask : undefined;
  const question = questionOf(ask, shell);
  const kit_id = flags.kitId ?? (await question('kit id', known_id ?? randomUUID(), noUuid));
  const kit_name = flags.kitName ?? (await question('name of the kit, for people', ''));
  const broker_url =
    flags.broker ??
    (await question('broker, such as mqtts://broker.example.com:8883', no_broker, noBrokerAddress));
  const hasBroker = broker_url !== no_broker;
  const username = flags.username ?? (hasBroker ? await question('user name at the broker', kit_id) : kit_id);
  return {
    kit_id,
    kit_name: kit_name === '' ? undefined : kit_name,
    broker_url,
    username: username === kit_id ? undefined : username,
    ...filesOf(flags),
    password: await passwordOf(flags, hasBroker ? ask : undefined),
    state_dir: flags.stateDir,
    runtime_dir: flags.runtimeDir,
  };
}

function filesOf({ ca, cert, key }: SetupFlags): Pick<Asked, 'ca_file' | 'cert_file' | 'key_file'> {
  const absolute = (path: string | undefined): string | undefined => path && resolve(path);
  return { ca_file: absolute(ca), cert_file: absolute(cert), key_file: absolute(key) };
}

function questionOf(ask: Shell['ask'], shell: Shell): Question {
  return async (words, otherwise, objection = () => undefined) => {
    if (!ask) return otherwise;
    const shown = `${words}${otherwise === '' ? '' : ` [${otherwise}]`}: `;
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
  return z.uuid().safeParse(answer).success
    ? undefined
    : `"${answer}" is no UUID; press Enter for the one that is offered, or paste the one of the kit`;
}

/** Only what a person mistypes; everything else is checked with the whole file. */
function noBrokerAddress(answer: string): string | undefined {
  const url = URL.canParse(answer) ? new URL(answer) : undefined;
  const isAddress = url !== undefined && /^mqtts?:$/u.test(url.protocol) && url.hostname !== '';
  return answer === no_broker || isAddress
    ? undefined
    : `"${answer}" is no address of a broker; write mqtts://host:port, or none`;
}

async function passwordOf({ passwordFile }: SetupFlags, ask: Shell['ask']): Promise<string | undefined> {
  const text =
    passwordFile === undefined
      ? await ask?.('password at the broker (empty: none): ', { hidden: true })
      : await readFile(passwordFile, 'utf8').catch((error: unknown) => {
          throw new Error(`--password-file: ${passwordFile} ${unreadable(error)}`, { cause: error });
        });
  const password = text?.replace(/\r?\n$/u, '');
  return password === '' ? undefined : password;
}
