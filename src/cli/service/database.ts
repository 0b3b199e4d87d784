/** Opens the database of the service for one piece of work. The service may run meanwhile. */
import { existsSync, statSync } from 'node:fs';
import { readDatabase } from '../../kit/config/standalone.ts';
import { openStore, nameOf } from '../../cloud/open-store.ts';
import type { DatabaseOptions } from './database-options.ts';
import { copyDatabase } from '../../cloud/sql/backup.ts';
import { copyRows, isEmpty } from '../../cloud/sql/copy-rows.ts';
import { openPostgres } from '../../cloud/sql/postgres.ts';
import { openSqlite } from '../../cloud/sql/sqlite.ts';
import { messageOf } from '../../platform/errors.ts';
import { complain, exit, say, type Shell, size } from '../terminal/shell.ts';
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

/** Copies the SQLite file of the service, which may run meanwhile. */
export async function backUp(
  to: string,
  { config, database, force }: DatabaseOptions & { readonly force?: true },
  shell: Shell,
): Promise<number> {
  const choice = await readDatabase(config, database);
  const fault =
    choice.kind === 'sqlite' ? obstacle(choice.file, to, force === true) : texts.no_backup_of_postgres;
  if (choice.kind !== 'sqlite' || fault !== undefined) {
    complain(shell, fault ?? '');
    return exit.failed;
  }
  await copyDatabase(choice.file, to).catch((error: unknown) => {
    throw new Error(texts.backup_failed(choice.file, to, messageOf(error)), { cause: error });
  });
  say(shell, texts.backed_up(choice.file, to, size(statSync(to).size)));
  return exit.ok;
}

/** Copies everything from the SQLite file of a service that is stopped into the PostgreSQL of the configuration. */
export async function copyDatabaseFrom(
  file: string,
  options: DatabaseOptions,
  shell: Shell,
): Promise<number> {
  const choice = await readDatabase(options.config, options.database);
  const fault = existsSync(file) ? undefined : texts.no_source(file);
  if (choice.kind !== 'postgres' || fault !== undefined) {
    complain(shell, fault ?? texts.copy_to_postgres(nameOf(choice)));
    return exit.failed;
  }
  const source = openSqlite(file, { upgrade: 'never' });
  const target = await openPostgres(choice, { upgrade: 'never' });
  try {
    if (!(await isEmpty(target))) {
      complain(shell, texts.not_empty(nameOf(choice)));
      return exit.failed;
    }
    say(shell, texts.copied(await copyRows(source, target), file, nameOf(choice)));
    return exit.ok;
  } finally {
    await source.close();
    await target.close();
  }
}

function obstacle(file: string, to: string, isForced: boolean): string | undefined {
  if (!existsSync(file)) return texts.no_database(file);
  return existsSync(to) && !isForced ? texts.backup_exists(to) : undefined;
}
