/** The store on an SQL database, SQLite or PostgreSQL: its parts, over one interface for statements. */
import { arrivalReads, historyReads, historyUpkeep } from '../history/history-store.ts';
import type { Reception } from '../read-message.ts';
import { webhookQueue, webhookRegistry } from '../webhooks/webhook-store.ts';
import { commitReceptions } from './commit.ts';
import { kitStore } from './kits.ts';
import { removalStore } from './removed-kits.ts';
import { partnerStore } from './partners.ts';
import { raw, sql, type Database, type Queries } from '../sql/database.ts';
import type { ApiKey, Change, Claim, Committed, RepeatableRequest, StoreContext } from '../stored/stored.ts';
import { taskStore } from './tasks.ts';
import { enqueue, eraseMessages } from '../webhooks/enqueue.ts';
import { alarmEvents, fileEvent } from '../webhooks/events.ts';
import { alarmStore, eraseAlarms } from '../alarms/alarm-store.ts';
import { hasAlarmsToLookAt, lookAtAlarms } from '../alarms/follow.ts';
import { eraseFiles, fileStore, type StoredFile } from '../files/file-store.ts';
import type { EraseMessages } from '../history/erase.ts';
import type { Json } from '../../contract/json.ts';
import { keyOf } from '../stored/plain-rows.ts';
import { jsonOf } from '../stored/rows.ts';

/** Answers to repeated requests are kept for so long. */
const answers_kept_ms = 86_400_000;

function keyStore({ database }: StoreContext) {
  return {
    async keys(): Promise<readonly ApiKey[]> {
      const rows = await sql(database)`SELECT api_keys.*, used_ms FROM api_keys
        LEFT JOIN key_uses ON key_uses.key_id = api_keys.key_id ORDER BY created_ms, api_keys.key_id`;
      return rows.map(keyOf);
    },

    /** Replicas may add the same first key at the same time. */
    async addKey(key: ApiKey): Promise<void> {
      await sql(database)`INSERT INTO api_keys
          (key_id, user_id, label, hash, scopes, kits, created_ms, expires_ms)
        VALUES (${key.key_id}, ${key.user_id}, ${key.label}, ${key.hash}, ${JSON.stringify(key.scopes)},
          ${JSON.stringify(key.kits)}, ${key.created_ms}, ${key.expires_ms}) ON CONFLICT (key_id) DO NOTHING`;
    },

    async changeKey({ key_id, label, scopes, kits, expires_ms }: ApiKey): Promise<void> {
      await sql(database)`UPDATE api_keys SET label = ${label}, scopes = ${JSON.stringify(scopes)},
        kits = ${JSON.stringify(kits)}, expires_ms = ${expires_ms} WHERE key_id = ${key_id}`;
    },

    /** Stores the secrets of a key. */
    async rotateKey({ key_id, hash, old_hash, old_until_ms }: ApiKey): Promise<void> {
      await sql(database)`UPDATE api_keys SET hash = ${hash}, old_hash = ${old_hash},
        old_until_ms = ${old_until_ms} WHERE key_id = ${key_id}`;
    },

    /** Stores when keys were used last: pairs of key_id and milliseconds since 1970. */
    async noteUses(uses: readonly (readonly [key_id: string, used_ms: number])[]): Promise<void> {
      for (const [key_id, used_ms] of uses) {
        await sql(database)`INSERT INTO key_uses (key_id, used_ms) VALUES (${key_id}, ${used_ms})
          ON CONFLICT (key_id) DO UPDATE SET used_ms = excluded.used_ms
            WHERE excluded.used_ms > key_uses.used_ms`;
      }
    },

    async revokeKey(key_id: string): Promise<boolean> {
      for (const table of ['key_uses', 'sessions'])
        await sql(database)`DELETE FROM ${raw(table)} WHERE key_id = ${key_id}`;
      const gone = await sql(database)`DELETE FROM api_keys WHERE key_id = ${key_id} RETURNING key_id`;
      return gone.length > 0;
    },

    /** `hash` is of the session's secret. */
    async addSession(hash: string, key_id: string, expires_ms: number): Promise<void> {
      await sql(database)`INSERT INTO sessions (hash, key_id, expires_ms)
        VALUES (${hash}, ${key_id}, ${expires_ms})`;
    },

    /** The key of a session that is not over. */
    async session(hash: string, now_ms: number): Promise<string | undefined> {
      const [row] = await sql(database)`SELECT key_id FROM sessions WHERE hash = ${hash}
        AND expires_ms > ${now_ms}`;
      return row && String(row['key_id']);
    },

    async endSession(hash: string): Promise<void> {
      await database.all('DELETE FROM sessions WHERE hash = ? OR expires_ms < ?', hash, Date.now());
    },
  };
}

function requestStore({ database }: StoreContext) {
  return {
    /** Claims the key for this request for a day, unless it is in use. */
    async claim({ key_id, idempotency_key, request }: RepeatableRequest, now_ms: number): Promise<Claim> {
      await database.all('DELETE FROM answers WHERE created_ms <= ?', now_ms - answers_kept_ms);
      const [mine] = await sql(database)`INSERT INTO answers (key_id, idempotency_key, request, created_ms)
        VALUES (${key_id}, ${idempotency_key}, ${request}, ${now_ms})
        ON CONFLICT (key_id, idempotency_key) DO NOTHING RETURNING key_id`;
      if (mine) return { kind: 'mine' };
      const [row] = await sql(database)`SELECT request, answer FROM answers
        WHERE key_id = ${key_id} AND idempotency_key = ${idempotency_key}`;
      const answer = row?.['answer'] ?? null;
      return {
        kind: 'known',
        request: String(row?.['request']),
        answer: answer === null ? null : jsonOf.parse(answer),
      };
    },

    /** Stores the answer of a claimed request. */
    async answer({ key_id, idempotency_key }: RepeatableRequest, answer: Json): Promise<void> {
      await sql(database)`UPDATE answers SET answer = ${JSON.stringify(answer)}
        WHERE key_id = ${key_id} AND idempotency_key = ${idempotency_key}`;
    },

    /** Releases the key of a claimed request that had no effect. */
    async unclaim({ key_id, idempotency_key }: RepeatableRequest): Promise<void> {
      await sql(database)`DELETE FROM answers WHERE key_id = ${key_id}
        AND idempotency_key = ${idempotency_key} AND answer IS NULL`;
    },
  };
}

export type StoreOptions = Partial<Omit<StoreContext, 'database'>>;

export function sqlStore(
  database: Database,
  { announce = async () => undefined, keepsHistory = true, replica_id }: StoreOptions = {},
) {
  const context: StoreContext = { database, announce, keepsHistory, replica_id };
  return {
    ...kitStore(context),
    ...removalStore(context),
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
  const alarms = await sql(queries)`SELECT alarm_id FROM alarms WHERE kit_id = ${file.kit_id}
    AND files LIKE ${`%${file.file_id}%`} ORDER BY since_ms DESC`;
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
