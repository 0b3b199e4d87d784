/** Opens the database of the service for one piece of work. The service may run meanwhile. */
import { readDatabase } from '../../config/standalone.ts';
import { openStore } from '../../service/store/open-store.ts';
import type { Store } from '../../service/store/store.ts';
import type { DatabaseOptions } from './database-options.ts';

export async function withStore<T>(
  { config, database }: DatabaseOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { store } = await openStore(await readDatabase(config, database));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
