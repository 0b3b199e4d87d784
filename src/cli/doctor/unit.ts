/** What systemd and its journal know of a service of the packages: restarts after crashes, and errors that it logged. */
// oxlint-disable-next-line no-restricted-imports -- commands that a person runs, not the daemon; the journal has no other reader
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { durationInWords } from '../../platform/log/entry.ts';
import { localTime } from '../../platform/local-time.ts';
import { fail, type Finding, plain, warn } from './finding.ts';
import { credential_store } from './stored-secrets.ts';
import { texts } from './texts.ts';

const answer_ms = 5_000;
const output_bytes_max = 8 * 1024 * 1024;
/** SD_MESSAGE_UNIT_PROCESS_EXIT, sd-messages.h of systemd. */
const process_exit = '98e322203f7a4ed290d09fe03c09fe15';
const recent_s = 3_600;

const exitEntry = z.object({
  __REALTIME_TIMESTAMP: z.coerce.number(),
  EXIT_CODE: z.string().catch(''),
  EXIT_STATUS: z.string().catch(''),
});

/** Where the credentials of a unit are stored, and where systemd puts those that it passes to one that runs. */
const credential_dirs = { stored: credential_store, passed: '/run/credentials' };

/** Without systemd, and where this user may not read the journal, there are none. `env`: where the programs are looked for. */
export async function checkUnit(
  unit: string,
  env = process.env,
  dirs = credential_dirs,
): Promise<readonly Finding[]> {
  const [shown, exits, errors] = await Promise.all([
    answerOf(env, 'systemctl', 'show', unit, '-p', 'NRestarts', '-p', 'ActiveState'),
    answerOf(
      env,
      'journalctl',
      '-q',
      `UNIT=${unit}.service`,
      `MESSAGE_ID=${process_exit}`,
      '-n',
      '1',
      '-o',
      'json',
    ),
    answerOf(env, 'journalctl', '-q', '-u', unit, '-p', 'err', '--since', `-${recent_s}s`, '-o', 'cat'),
  ]);
  const restarts = Number(/^NRestarts=(\d+)$/mu.exec(shown)?.[1] ?? 0);
  const lines = errors.split('\n').filter((line) => line !== '');
  const last = lines.at(-1);
  return [
    ...(/^ActiveState=active$/mu.test(shown) ? await checkPassed(unit, dirs) : []),
    ...(restarts > 0
      ? [warn('restarts', texts.restarted(restarts, lastExit(exits)), texts.see_crash(unit))]
      : []),
    ...(last === undefined
      ? []
      : [
          warn(
            'last errors',
            texts.errors_logged(lines.length, durationInWords(recent_s), plain(last)),
            texts.see_journal(unit),
          ),
        ]),
  ];
}

/** In containers of LXC, LXD and Incus every LoadCredential= is emptied: https://github.com/lxc/distrobuilder/issues/985. */
async function checkPassed(
  unit: string,
  { stored, passed }: typeof credential_dirs,
): Promise<readonly Finding[]> {
  const names = await readdir(stored).catch(() => []);
  const name = names.find((each) => each.startsWith(`${unit}.mqtt-`));
  if (name === undefined || existsSync(join(passed, `${unit}.service`))) return [];
  return [fail('credentials', texts.not_passed(join(stored, name)), texts.name_in_file(unit))];
}

/** How and when its process ended last: `killed (KILL) at 12:03:11`. */
function lastExit(entry: string): string {
  const read = exitEntry.safeParse(parsed(entry));
  if (!read.success) return '';
  const { __REALTIME_TIMESTAMP: time_us, EXIT_CODE: code, EXIT_STATUS: status } = read.data;
  return texts.ended_at(
    plain(`${code} ${status}`.trim()),
    localTime(new Date(time_us / 1_000).toISOString()),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For a support bundle, by file: the journal since the boot before the last crash, the state of the unit, and what is installed. */
export async function unitFiles(unit: string, env = process.env): Promise<Readonly<Record<string, string>>> {
  const lines = ['--no-pager', '-o', 'short-iso-precise', '-n', '5000'];
  const commands: Readonly<Record<string, readonly string[]>> = {
    'journal.txt': ['journalctl', '-q', '-u', unit, ...lines],
    'unit.txt': ['systemctl', 'show', unit],
    'packages.txt': [
      'dpkg-query',
      '-W',
      '-f',
      '${db:Status-Abbrev} ${Package} ${Version}\n',
      'kit-connector*',
    ],
    'routes.txt': ['ip', 'route', 'show', 'table', 'all'],
    'rules.txt': ['ip', 'rule'],
  };
  const read = Object.entries(commands).map(
    async ([name, [program = '', ...args]]) => [name, await answerOf(env, program, ...args)] as const,
  );
  const texts = Object.fromEntries((await Promise.all(read)).filter(([, text]) => text.trim() !== ''));
  const { 'unit.txt': shown, ...others } = texts;
  return shown === undefined ? others : { ...others, 'unit.txt': withoutValues(shown) };
}

/** What a drop-in gives the service in variables may be secret whatever their names are: https://github.com/elastic/elastic-agent/pull/15284. */
function withoutValues(shown: string): string {
  return shown.replaceAll(
    /^Environment=.*$/gmu,
    (line) => `Environment=${line.slice(12).replaceAll(/"(\w+)=(?:[^"\\]|\\.)*"|(\w+)=\S*/gu, '$1$2=***')}`,
  );
}

/** What a program prints; empty where it is missing or fails. */
async function answerOf(
  env: NodeJS.ProcessEnv,
  program: string,
  ...args: readonly string[]
): Promise<string> {
  const options = { env: { ...env, LC_ALL: 'C.UTF-8' }, timeout: answer_ms, maxBuffer: output_bytes_max };
  return promisify(execFile)(program, [...args], options).then(
    ({ stdout }) => stdout,
    () => '',
  );
}
