/** What the daemon and the service for many kits are to systemd and its journal. */
import { writeFile } from 'node:fs/promises';
import { isJournal, type JournalSource, openJournal } from '../../platform/systemd/journal.ts';
import type { LogOptions } from '../../platform/log/log.ts';
import type { Shell } from '../terminal/shell.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { texts } from '../texts.ts';

/** Sets the process name that top, ps and the journal show (15 characters of it); the default is that of a Node.js thread. */
export async function nameProcess(name: string): Promise<void> {
  await writeFile('/proc/self/comm', name).catch(() => undefined);
}

/** The journal if systemd started the process, coloured lines on a terminal, JSON elsewhere. */
export async function logOutput(
  source: JournalSource,
  shell: Shell,
): Promise<Pick<LogOptions, 'out' | 'readable'>> {
  if (!isJournal(2, shell.env['JOURNAL_STREAM'])) {
    return { out: shell.out, readable: shell.out.isTTY === true };
  }
  const instead = (text: string): unknown => shell.err.write(text);
  return { out: await openJournal({ ...source, instead }), readable: false };
}

export function refuseUnverifiedTls(env: Readonly<Record<string, string | undefined>>): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return;
  throw new ConfigInvalid([texts.tls_not_verified]);
}
