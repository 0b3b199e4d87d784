/** `kit-connector run`: the daemon. */
import { writeFile } from 'node:fs/promises';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../config.ts';
import { isJournal, openJournal, syslog_identifier } from '../platform/journal.ts';
import { createLog, type LogOptions } from '../platform/log.ts';
import { hangupsOf } from './daemon-reload.ts';
import { runDaemon } from './daemon.ts';
import type { Shell } from './shell.ts';

export async function run(file: string, shell: Shell): Promise<number> {
  const hangups = hangupsOf(shell);
  await nameProcess();
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const readAgain = async (): Promise<Config> => readConfig(file, { drivers, credentials_dir });
  const config = await readAgain();
  const log = createLog({ ...config.log, ...(await logOutput(config, shell)) });
  for (const warning of config.warnings) log.warn({ file }, warning);
  try {
    return await runDaemon(
      { config, log, onReady: () => undefined, reloads: { ...hangups, readAgain } },
      shell,
    );
  } finally {
    log.close();
  }
}

/** For top, ps and the journal, which would show the name of a thread of Node.js. */
async function nameProcess(): Promise<void> {
  await writeFile('/proc/self/comm', syslog_identifier).catch(() => undefined);
}

/** The journal where systemd started us, coloured lines on a terminal, JSON elsewhere. */
async function logOutput({ kit_id }: Config, shell: Shell): Promise<Pick<LogOptions, 'out' | 'readable'>> {
  if (!isJournal(2, shell.env['JOURNAL_STREAM']))
    return { out: shell.out, readable: shell.out.isTTY === true };
  const instead = (text: string): unknown => shell.err.write(text);
  return { out: await openJournal({ kit_id, instead }), readable: false };
}
