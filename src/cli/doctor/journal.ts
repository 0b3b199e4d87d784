/** Checks whether this user can read the log of the service, which systemd's journal keeps. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from './finding.ts';
import { isClosed } from './permissions.ts';
import { texts } from './texts.ts';

const journals = ['/var/log/journal', '/run/log/journal'] as const;

/** No finding where it can be read, or where no journal is kept. It is no fault of the kit, and needs no look. */
export async function checkJournal(
  folders: readonly string[] = journals,
  isDenied: (file: string) => Promise<boolean> = isClosed,
): Promise<readonly Finding[]> {
  for (const folder of folders) {
    for (const machine of await readdir(folder).catch(() => [])) {
      if (await isDenied(join(folder, machine, 'system.journal')))
        return [{ level: 'ok', what: 'journal', finding: texts.journal_denied, remedy: texts.join_adm }];
    }
  }
  return [];
}
