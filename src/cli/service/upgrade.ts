/** `kit-connector service upgrade`: brings the tables up to date while services of earlier versions are connected. */
import { readDatabase } from '../../config/standalone.ts';
import { nameOf, openStore } from '../../service/store/open-store.ts';
import { exit, say, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import type { DatabaseOptions } from './database-options.ts';

export async function upgradeTables({ config, database }: DatabaseOptions, shell: Shell): Promise<number> {
  const choice = await readDatabase(config, database);
  await (await openStore(choice, { upgrade: 'now' })).store.close();
  say(shell, texts.tables_upgraded(nameOf(choice)));
  return exit.ok;
}
