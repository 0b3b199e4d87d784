/** The store on an SQL database, SQLite or PostgreSQL: its parts, over one interface for statements. */
import { historyReads, historyUpkeep } from '../history/history-store.ts';
import type { Reception } from '../read-message.ts';
import { webhookQueue, webhookRegistry } from '../webhooks/webhook-store.ts';
import { commitReceptions } from './commit.ts';
import { keyStore, requestStore } from './keys.ts';
import { kitStore } from './kits.ts';
import { partnerStore } from './partners.ts';
import type { Database } from '../sql/database.ts';
import type { Committed, StoreContext } from '../stored/stored.ts';
import { taskStore } from './tasks.ts';
import { eraseMessages } from '../webhooks/enqueue.ts';

export type StoreOptions = Partial<Omit<StoreContext, 'database'>>;

export function sqlStore(
  database: Database,
  { announce = async () => undefined, keepsHistory = true, replica_id }: StoreOptions = {},
) {
  const context: StoreContext = { database, announce, keepsHistory, replica_id };
  return {
    ...kitStore(context),
    ...partnerStore(context),
    ...taskStore(context),
    ...requestStore(context),
    ...keyStore(context),
    ...historyReads(context),
    ...historyUpkeep({ ...context, commit: commitReceptions, eraseMessages }),
    ...webhookRegistry(context),
    ...webhookQueue(context),

    /** Stores what was received, each message once, whatever the order. Resolves when it is on disk. */
    async commit(receptions: readonly Reception[], now_ms: number): Promise<Committed> {
      return database.transactionAhead(async (queries) => {
        const committed = await commitReceptions(queries, receptions, { now_ms, keepsHistory });
        await announce(queries, committed.changes);
        return committed;
      });
    },

    /** Why this program may not write the database any more, since another version has changed its tables; undefined: it may. */
    schemaFault: async (): Promise<string | undefined> => database.schemaFault(),

    close: async (): Promise<void> => database.close(),
  };
}

/** Every method may reject with `StorageUnavailable`; nothing of a rejected commit is kept. */
export type Store = ReturnType<typeof sqlStore>;
