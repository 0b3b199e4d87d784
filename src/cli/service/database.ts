/** Opens the database of the service for one piece of work. The service may run meanwhile. */
import { existsSync } from 'node:fs';
import { readDatabase } from '../../kit/config/standalone.ts';
import { openStore, nameOf } from '../../cloud/open-store.ts';
import type { DatabaseOptions } from './database-options.ts';
import { exit, say, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import type { Store } from '../../cloud/store/sql-store.ts';

export async function withStore<T>(
  { config, database }: DatabaseOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { store } = await openStore(await readDatabase(config, database), { upgrade: 'never' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The file of the database when there is none: `withStore` would make an empty one. */
export async function missingFile({ config, database }: DatabaseOptions): Promise<string | undefined> {
  const choice = await readDatabase(config, database);
  return choice.kind === 'sqlite' && !existsSync(choice.file) ? choice.file : undefined;
}

export async function upgradeTables({ config, database }: DatabaseOptions, shell: Shell): Promise<number> {
  const choice = await readDatabase(config, database);
  await (await openStore(choice, { upgrade: 'now' })).store.close();
  say(shell, texts.tables_upgraded(nameOf(choice)));
  return exit.ok;
}
