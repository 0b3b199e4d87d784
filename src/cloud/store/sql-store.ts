/** The store on an SQL database, SQLite or PostgreSQL: its parts, over one interface for statements. */
import { arrivalReads, historyReads, historyUpkeep } from '../history/history-store.ts';
import type { Reception } from '../read-message.ts';
import { webhookQueue, webhookRegistry } from '../webhooks/webhook-store.ts';
import { commitReceptions } from './commit.ts';
import { keyStore, requestStore } from './keys.ts';
import { kitStore } from './kits.ts';
import { partnerStore } from './partners.ts';
import type { Database, Queries } from '../sql/database.ts';
import type { Change, Committed, StoreContext } from '../stored/stored.ts';
import { taskStore } from './tasks.ts';
import { enqueue, eraseMessages } from '../webhooks/enqueue.ts';
import { alarmEvents, fileEvent } from '../webhooks/events.ts';
import { alarmStore, eraseAlarms } from '../alarms/alarm-store.ts';
import { hasAlarmsToLookAt, lookAtAlarms } from '../alarms/follow.ts';
import { eraseFiles, fileStore, type StoredFile } from '../files/file-store.ts';
import type { EraseMessages } from '../history/erase.ts';

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
    ...arrivalReads(context),
    ...historyUpkeep({
      ...context,
      commit: commitReceptions,
      async eraseMessages(queries, erasure) {
        const changes = await eraseEvents(queries, erasure);
        if (changes.length > 0) await announce(queries, changes);
        return changes;
      },
    }),
    ...webhookRegistry(context),
    ...webhookQueue(context),
    ...alarmStore(context),
    ...fileStore({ ...context, enqueueFile }),

    /** Stores what was received, each message once, whatever the order. Resolves when it is on disk. */
    async commit(receptions: readonly Reception[], now_ms: number): Promise<Committed> {
      return database.transactionAhead(async (queries) => {
        const committed = await commitReceptions(queries, receptions, { now_ms, keepsHistory });
        await announce(queries, committed.changes);
        return committed;
      });
    },

    /** Opens and closes what changes with time alone. */
    async lookAtAlarms(now_ms: number): Promise<readonly Change[]> {
      if (!(await hasAlarmsToLookAt(database, now_ms))) return [];
      return database.transaction(async (queries) => {
        const followed = await lookAtAlarms(queries, now_ms);
        await enqueue(queries, alarmEvents(followed), now_ms);
        await announce(queries, followed.changes);
        return followed.changes;
      });
    },

    /** Why this program may not write the database any more, since another version has changed its tables; undefined: it may. */
    schemaFault: async (): Promise<string | undefined> => database.schemaFault(),

    close: async (): Promise<void> => database.close(),
  };
}

async function enqueueFile(queries: Queries, file: StoredFile, now_ms: number): Promise<void> {
  const alarms = await queries.all(
    'SELECT alarm_id FROM alarms WHERE kit_id = ? AND files LIKE ? ORDER BY since_ms DESC',
    file.kit_id,
    `%${file.file_id}%`,
  );
  const ids = alarms.map(({ alarm_id }) => String(alarm_id));
  await enqueue(queries, [fileEvent(file, ids)], now_ms);
}

/** Alarms, and those that wait for webhooks. */
const eraseEvents: EraseMessages = async (queries, erasure) => {
  await eraseMessages(queries, erasure);
  await eraseAlarms(queries, erasure);
  return eraseFiles(queries, erasure);
};

/** Every method may reject with `StorageUnavailable`; nothing of a rejected commit is kept. */
export type Store = ReturnType<typeof sqlStore>;
