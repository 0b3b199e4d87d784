/** Opens the database that the configuration names: a file of SQLite, or a PostgreSQL that replicas share. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Changes } from '../changes.ts';
import { Neighbours } from '../neighbours.ts';
import type { ServiceLog } from '../service-log.ts';
import { openPostgres, type PostgresOptions } from './postgres.ts';
import { SharedStore } from './shared-store.ts';
import type { Store } from './store.ts';
import { openThreadStore } from './thread-store.ts';

export type DatabaseChoice =
  | { readonly kind: 'sqlite'; readonly file: string }
  | ({ readonly kind: 'postgres' } & PostgresOptions);

export interface OpenedStore {
  readonly store: Store;
  /** Tells `changes` what other replicas store, until the signal aborts; undefined: there can be no others. */
  readonly hear: ((changes: Changes, log: ServiceLog, signal: AbortSignal) => Promise<void>) | undefined;
}

/** Rejects with `StorageUnavailable` and what to do about it. */
export async function openStore(choice: DatabaseChoice): Promise<OpenedStore> {
  if (choice.kind === 'sqlite') {
    await mkdir(dirname(choice.file), { recursive: true, mode: 0o750 });
    return { store: await openThreadStore(choice.file), hear: undefined };
  }
  const neighbours = new Neighbours();
  const database = await openPostgres(choice);
  const store = new SharedStore(database, async (queries, changes) => neighbours.tell(queries, changes));
  return {
    store,
    hear: async (changes, log, signal) => neighbours.listen({ options: choice, changes, store, log }, signal),
  };
}

/** How the database is named to people. */
export function nameOf(choice: DatabaseChoice): string {
  return choice.kind === 'sqlite' ? choice.file : choice.url.replace(/\?.*$/u, '');
}
