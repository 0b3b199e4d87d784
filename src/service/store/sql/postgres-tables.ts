/** Makes the tables of PostgreSQL, and what later versions added to them. */
import { StorageUnavailable } from '../../../errors.ts';
import { texts } from '../../texts.ts';
import type { Database, Queries } from './database.ts';
import {
  added_columns,
  after_columns,
  content_columns,
  schema_version,
  tables,
  updated_tables,
} from './tables.ts';

/** Advisory lock, the same in all versions: one replica at a time prepares the tables. */
const schema_lock = 7_236_401;
/** Of a database that takes each text; the second stores bytes as they come. */
const encodings: ReadonlySet<string> = new Set(['UTF8', 'SQL_ASCII']);
/** How full a page of `updated_tables` becomes by insertions. */
const updated_fill_pct = 45;

/** Makes what is missing. `wait_max_ms`: for another replica that makes it, or that uses a table which is to be changed. */
export async function prepareTables(database: Database, wait_max_ms: number): Promise<void> {
  await database.transaction(async (queries) => {
    const [encoding] = await queries.all(`SELECT current_setting('server_encoding') AS name`);
    const found_encoding = String(encoding?.['name']);
    if (!encodings.has(found_encoding)) throw new StorageUnavailable(texts.postgres_encoding(found_encoding));
    // Another replica may be making the tables, and others write into them.
    await queries.all(`SELECT set_config('lock_timeout', ?, true)`, String(wait_max_ms));
    await queries.all('SELECT pg_advisory_xact_lock(?)', schema_lock);
    for (const statement of await missing(queries)) await queries.all(statement);
    await tuneTables(queries);
    const [row] = await queries.all(`SELECT value FROM service WHERE name = 'schema_version'`);
    const found = Number(row?.['value'] ?? 0);
    if (found > schema_version) {
      throw new StorageUnavailable(texts.later_version_database(found));
    }
    if (found === schema_version) return;
    await queries.all(
      `INSERT INTO service (name, value) VALUES ('schema_version', ?)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      String(schema_version),
    );
  });
}

/** Sets what is not set yet, so that a start locks nothing for it. Citus refuses these statements for tables that it has distributed. */
async function tuneTables(queries: Queries): Promise<void> {
  const full = await queries.all(
    `SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND 'fillfactor=${updated_fill_pct}' = ANY (reloptions)`,
  );
  for (const table of updated_tables) {
    if (!full.some(({ relname }) => relname === table))
      await queries.all(`ALTER TABLE ${table} SET (fillfactor = ${updated_fill_pct})`);
  }
  const without = await queries.all(
    `SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE pg_table_is_visible(pg_class.oid) AND attnum > 0 AND attstattarget = 0`,
  );
  // Statistics would keep examples of values that were erased, and no statement searches for these.
  for (const [table, column] of content_columns) {
    if (!without.some(({ relname, attname }) => relname === table && attname === column))
      await queries.all(`ALTER TABLE ${table} ALTER COLUMN ${column} SET STATISTICS 0`);
  }
}

/**
 * The statements that are to be run. What exists is looked up: `ALTER TABLE ... IF NOT EXISTS` and `CREATE INDEX IF NOT EXISTS` wait for
 * every transaction that writes to the table, and all later ones wait for them, also when there is nothing to do.
 */
async function missing(queries: Queries): Promise<readonly string[]> {
  const rows = await queries.all(
    `SELECT relname, attname FROM pg_class LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
     WHERE pg_table_is_visible(pg_class.oid) AND relnamespace <> 'pg_catalog'::regnamespace`,
  );
  const relations = new Set(rows.map(({ relname }) => relname));
  const columns = new Set(rows.map(({ relname, attname }) => `${String(relname)}.${String(attname)}`));
  const isMissing = (statement: string): boolean => {
    const [, name] = /IF NOT EXISTS (\w+)/u.exec(statement) ?? [];
    return name === undefined || !relations.has(name);
  };
  const added = added_columns.filter(({ table, column }) => !columns.has(`${table}.${column}`));
  return [
    ...tables.filter(isMissing),
    ...added.map(
      ({ table, column, type }) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${column} ${type}`,
    ),
    ...after_columns.filter(isMissing),
  ];
}
