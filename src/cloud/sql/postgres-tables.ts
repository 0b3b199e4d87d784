/** Makes the tables of PostgreSQL, and what later versions added to them, beside processes of several versions that write them. */
import { SchemaRefused, StorageUnavailable } from '../../platform/errors.ts';
import { sql, type Database, type Queries, type Row } from './database.ts';
import { additions, type Marks, raised, type Schema, type Upgrade } from './schema.ts';
import { content_columns, updated_tables } from './tables.ts';
import { texts } from '../texts.ts';

/** Of a database that takes each text; the second stores bytes as they come. */
const encodings: ReadonlySet<string> = new Set(['UTF8', 'SQL_ASCII']);
/** How full a page of `updated_tables` becomes by insertions. */
const updated_fill_pct = 45;

interface Preparing {
  readonly schema: Schema;
  readonly upgrade: Upgrade;
  /** For the transactions of others, and for a table that is to be changed. */
  readonly wait_max_ms: number;
}

/**
 * Makes what is missing. It looks first with the lock that writers share: a start with nothing to do delays nobody. Rejects with `SchemaRefused`
 * when a later version has excluded this one.
 */
export async function prepareTables(database: Database, options: Preparing): Promise<void> {
  for (const lock of ['pg_advisory_xact_lock_shared', 'pg_advisory_xact_lock'] as const) {
    const isDone = await database.transaction(async (queries) => {
      await checkEncoding(queries);
      await queries.all(`SELECT set_config('lock_timeout', ?, true)`, String(options.wait_max_ms));
      await queries.all(`SELECT ${lock}(${schema_lock})`);
      return prepare(queries, options, lock === 'pg_advisory_xact_lock');
    });
    if (isDone) return;
  }
}

async function checkEncoding(queries: Queries): Promise<void> {
  const [encoding] = await queries.all(`SELECT current_setting('server_encoding') AS name`);
  const found = String(encoding?.['name']);
  if (!encodings.has(found)) throw new StorageUnavailable(texts.postgres_encoding(found));
}

/** Returns whether the tables are as this program needs them. */
async function prepare(queries: Queries, { schema, upgrade }: Preparing, isAlone: boolean): Promise<boolean> {
  const found = await marksIn(queries);
  if (found.writers_from > schema.version) {
    throw new SchemaRefused(texts.later_version_database(found.version));
  }
  // A later version only added to the tables, or it would have excluded this one.
  if (found.version > schema.version) return true;
  if (upgrade === 'never' && found.version > 0) return used(found, schema);
  const marks = raised(found, schema);
  const isRaised = marks.version > found.version || marks.writers_from > found.writers_from;
  const missing = [...additions(schema, await presentIn(queries)), ...(await untuned(queries))];
  if (missing.length === 0 && !isRaised) return true;
  if (!isAlone) return false;
  if (found.version > 0) await excludeOlder(queries, { found, marks, upgrade });
  for (const statement of missing) await queries.all(statement);
  if (isRaised) await writeMarks(queries, marks);
  return true;
}

/** Zeros in a database without tables. */
async function marksIn(queries: Queries): Promise<Marks> {
  const [table] = await queries.all(`SELECT to_regclass('service') IS NOT NULL AS here`);
  return table?.['here'] === true ? readMarks(queries) : { version: 0, writers_from: 0 };
}

/** A tool takes the tables as they are. */
function used(found: Marks, schema: Schema): true {
  if (found.version < schema.version) throw new StorageUnavailable(texts.tables_not_upgraded);
  return true;
}

interface Excluding {
  readonly found: Marks;
  readonly marks: Marks;
  readonly upgrade: Upgrade;
}

/** Rejects while programs are connected that the new marks exclude: those that would write on, and others unless they are to end. */
async function excludeOlder(queries: Queries, { found, marks, upgrade }: Excluding): Promise<void> {
  if (marks.writers_from === found.writers_from) return;
  const { fenced, unfenced } = await olderWriters(queries, marks.writers_from);
  if (unfenced > 0) throw new StorageUnavailable(texts.unfenced_writers(unfenced));
  if (fenced > 0 && upgrade !== 'now') throw new StorageUnavailable(texts.older_writers(fenced));
}

/** The settings that are not set yet, so that a start locks nothing for them. */
async function untuned(queries: Queries): Promise<readonly string[]> {
  const full = await queries.all(
    `SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND 'fillfactor=${updated_fill_pct}' = ANY (reloptions)`,
  );
  const without = await queries.all(
    `SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE pg_table_is_visible(pg_class.oid) AND attnum > 0 AND attstattarget = 0`,
  );
  return [
    ...updated_tables
      .filter((table) => !full.some(({ relname }) => relname === table))
      .map((table) => `ALTER TABLE ${table} SET (fillfactor = ${updated_fill_pct})`),
    // Statistics would keep examples of values that were erased, and no statement searches for these.
    ...content_columns
      .filter(
        ([table, column]) => !without.some((each) => each['relname'] === table && each['attname'] === column),
      )
      .map(([table, column]) => `ALTER TABLE ${table} ALTER COLUMN ${column} SET STATISTICS 0`),
  ];
}

/**
 * Tables, indexes and columns. They are looked up: `ALTER TABLE ... IF NOT EXISTS` and `CREATE INDEX IF NOT EXISTS` wait for every
 * transaction that writes to the table, and all later ones wait for them, also when there is nothing to do.
 */
async function presentIn(queries: Queries): Promise<ReadonlySet<string>> {
  const rows = await queries.all(
    `SELECT relname, attname FROM pg_class LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
     WHERE pg_table_is_visible(pg_class.oid) AND relnamespace <> 'pg_catalog'::regnamespace`,
  );
  return new Set(
    rows.flatMap(({ relname, attname }) => [String(relname), `${String(relname)}.${String(attname)}`]),
  );
}

/** Advisory lock, the same in all versions: shared by every transaction that writes, and held alone by the one that changes the tables. */
export const schema_lock = 7_236_401;
/** Name of the connections of programs that look at no marks: those of schema version 2 and before. */
const unfenced = 'kit-connector';

/** The name of a connection, in `pg_stat_activity.application_name`. */
export function nameOfWriter(version: number): string {
  return `${unfenced}/${version}`;
}

/** The marks of a database that has tables. Before there were marks, all writers had the version of the tables. */
export async function readMarks(queries: Queries): Promise<Marks> {
  const rows = await queries.all(
    `SELECT name, value FROM service WHERE name IN ('schema_version', 'writers_from')`,
  );
  const of = (name: string): unknown => rows.find((row) => row['name'] === name)?.['value'];
  const version = Number(of('schema_version') ?? 0);
  return { version, writers_from: Number(of('writers_from') ?? version) };
}

async function writeMarks(queries: Queries, { version, writers_from }: Marks): Promise<void> {
  await sql(queries)`INSERT INTO service (name, value) VALUES ('schema_version', ${String(version)}),
    ('writers_from', ${String(writers_from)})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
}

interface Writers {
  /** They end by themselves at their next transaction once the tables are no longer theirs. */
  readonly fenced: number;
  /** They would write on. */
  readonly unfenced: number;
}

/** Connections of programs of an older version than this one to this database. */
async function olderWriters(queries: Queries, version: number): Promise<Writers> {
  const rows = await queries.all(
    `SELECT application_name FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE '${unfenced}%'`,
  );
  const names = rows.map((row: Row) => String(row['application_name']));
  const isOlder = (name: string): boolean => Number(name.slice(unfenced.length + 1)) < version;
  return {
    fenced: names.filter((name) => /^kit-connector\/\d+$/u.test(name) && isOlder(name)).length,
    unfenced: names.filter((name) => name === unfenced).length,
  };
}
