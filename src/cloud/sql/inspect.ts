/** What a PostgreSQL is and holds, for the doctor: it is asked without making or changing anything. */
import { z } from 'zod';
import { openPostgres, type PostgresOptions } from './postgres.ts';
import { readMarks } from './postgres-tables.ts';
import { replicationFault } from './replication.ts';

/** By their last statement the doctor knows the connections on which replicas hear of each other's changes. */
export const replica_channel = 'kit_changes';
export const replica_probe = `SELECT '${replica_channel}'`;

const facts = z.object({
  server: z.string(),
  encoding: z.string(),
  is_standby: z.boolean(),
  has_tables: z.boolean(),
  may_create: z.boolean(),
  bytes: z.coerce.number(),
  connections: z.coerce.number(),
  connections_max: z.coerce.number(),
  replicas: z.coerce.number(),
});

export interface PostgresFacts extends z.output<typeof facts> {
  /** Version of the tables; undefined: there are none. */
  readonly schema_version: number | undefined;
  /** Tables that this user may not read and write. */
  readonly closed: readonly string[];
  /** Why a failover would lose acknowledged messages. */
  readonly replication: string | undefined;
}

/** Rejects with the reason while it does not answer. `replicas`: other programs of ours that follow the changes in it. */
export async function inspectPostgres(
  options: PostgresOptions,
  isReplicated: boolean,
): Promise<PostgresFacts> {
  const database = await openPostgres(options, { prepares: false });
  try {
    const [row] = await database.all(
      `SELECT current_setting('server_version') AS server, current_setting('server_encoding') AS encoding,
         pg_is_in_recovery() AS is_standby, to_regclass('service') IS NOT NULL AS has_tables,
         COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
         pg_database_size(current_database()) AS bytes,
         (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
         current_setting('max_connections') AS connections_max,
         (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND (query LIKE ? OR query = ?)) AS replicas`,
      `LISTEN ${replica_channel}%`,
      replica_probe,
    );
    const read = facts.parse(row);
    const closed = await database.all(
      `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('service'))
         AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
           AND has_table_privilege(oid, 'DELETE')) ORDER BY relname`,
    );
    const isReadable = read.has_tables && !closed.some(({ relname }) => relname === 'service');
    return {
      ...read,
      schema_version: isReadable ? (await readMarks(database)).version : undefined,
      closed: closed.map(({ relname }) => String(relname)),
      replication: await replicationFault(database, isReplicated),
    };
  } finally {
    await database.close();
  }
}
