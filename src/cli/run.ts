/** `kit-connector run`: the daemon. */
import { writeFile } from 'node:fs/promises';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig, readStatePlace } from '../config/config.ts';
import { isJournal, openJournal, syslog_identifier } from '../platform/systemd/journal.ts';
import { createLog, type LogOptions } from '../platform/log/log.ts';
import { hangupsOf } from './daemon/reload.ts';
import { runDaemon } from './daemon/daemon.ts';
import { settleIdentity } from './kit-identity.ts';
import type { Shell } from './terminal/shell.ts';
import { refuseUnverifiedTls } from './unverified-tls.ts';

export async function run(file: string, shell: Shell): Promise<number> {
  refuseUnverifiedTls(shell.env);
  const hangups = hangupsOf(shell);
  await nameProcess();
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const readAgain = async (): Promise<Config> => readConfig(file, { drivers, credentials_dir });
  await settleIdentity({ file, ...(await readStatePlace(file)) });
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

/** Sets the process name that top, ps and the journal show; the default is that of a Node.js thread. */
async function nameProcess(): Promise<void> {
  await writeFile('/proc/self/comm', syslog_identifier).catch(() => undefined);
}

/** The journal if systemd started the process, coloured lines on a terminal, JSON elsewhere. */
async function logOutput({ kit_id }: Config, shell: Shell): Promise<Pick<LogOptions, 'out' | 'readable'>> {
  if (!isJournal(2, shell.env['JOURNAL_STREAM']))
    return { out: shell.out, readable: shell.out.isTTY === true };
  const instead = (text: string): unknown => shell.err.write(text);
  return { out: await openJournal({ kit_id, instead }), readable: false };
}
