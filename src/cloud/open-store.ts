/** Opens the database that the configuration names: a file of SQLite, or a PostgreSQL that replicas share. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ShareDatabase } from './broker/share-check.ts';
import type { Changes } from './changes.ts';
import { ReplicaNotifications } from './replication/replica-notifications.ts';
import type { ServiceLog } from './service-log.ts';
import { readStored } from './stored/received/received-numbers.ts';
import { openPostgres, type PostgresOptions } from './sql/postgres.ts';
import { replicationFault } from './sql/replication.ts';
import type { Upgrade } from './sql/schema.ts';
import { sqlStore, type Store } from './store/sql-store.ts';
import { openSqlite } from './sql/sqlite.ts';
import { openThreadStore } from './store/thread-store.ts';

export type DatabaseChoice =
  | { readonly kind: 'sqlite'; readonly file: string }
  | ({
      readonly kind: 'postgres';
      /** It has standbys, also while none is connected; left out: found out from the server. */
      readonly isReplicated?: boolean;
    } & PostgresOptions);

export interface OpenedStore {
  readonly store: Store;
  /** Passes the changes of other replicas to `changes` until the signal aborts; undefined: replicas are not possible. */
  readonly followReplicas:
    | ((
        changes: Changes,
        log: ServiceLog,
        signal: AbortSignal,
        onAnswer?: (text: string) => void,
      ) => Promise<void>)
    | undefined;
  /** Passes an answer to a viewer on to the other replicas; undefined: replicas are not possible. */
  readonly passAnswer?: ((text: string) => Promise<void>) | undefined;
  /** Whether a message is stored, by whichever replica; undefined: replicas are not possible. */
  readonly isReceived: ShareDatabase['isReceived'] | undefined;
  /** Returns why a failover would lose acknowledged messages; undefined where there are no standbys. */
  readonly replicationFault: (() => Promise<string | undefined>) | undefined;
}

/** Opens the store. Rejects with `StorageUnavailable` and what to do about it. */
export async function openStore(
  choice: DatabaseChoice,
  {
    keepsHistory = true,
    upgrade = 'alone',
    error,
  }: {
    readonly keepsHistory?: boolean;
    readonly upgrade?: Upgrade;
    readonly error?: ServiceLog['error'];
  } = {},
): Promise<OpenedStore> {
  if (choice.kind === 'sqlite') {
    await mkdir(dirname(choice.file), { recursive: true, mode: 0o750 });
    // A tool has nothing else to do while the disk works.
    const isTool = upgrade === 'never';
    return {
      store: isTool
        ? sqlStore(openSqlite(choice.file, { upgrade }), { keepsHistory })
        : await openThreadStore(choice.file, { keepsHistory, upgrade, error }),
      followReplicas: undefined,
      isReceived: undefined,
      replicationFault: undefined,
    };
  }
  const replicas = new ReplicaNotifications();
  const database = await openPostgres(choice, { upgrade });
  const store = sqlStore(database, {
    announce: async (queries, changes) => replicas.notify(queries, changes),
    keepsHistory,
    replica_id: randomUUID(),
  });
  return {
    store,
    isReceived: async (kit_id, epoch, seq) =>
      (await readStored(database, kit_id)).some(
        (ack) => ack.epoch === epoch && ack.ranges.some(([first, last]) => first <= seq && seq <= last),
      ),
    replicationFault: async () => replicationFault(database, choice.isReplicated ?? false),
    passAnswer: async (text) => replicas.passAnswer(database, text),
    followReplicas: async (changes, log, signal, onAnswer) =>
      replicas.listen({ options: choice, changes, store, log, onAnswer }, signal),
  };
}

/** Returns the name of the database for people. */
export function nameOf(choice: DatabaseChoice): string {
  return choice.kind === 'sqlite' ? choice.file : choice.url.replace(/\?.*$/u, '');
}
