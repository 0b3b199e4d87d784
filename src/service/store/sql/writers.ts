/** Processes of several versions that write one PostgreSQL: the lock between them, their marks, and how each is seen by the others. */
import type { Queries, Row } from './database.ts';
import type { Marks } from './schema.ts';

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

export async function writeMarks(queries: Queries, { version, writers_from }: Marks): Promise<void> {
  await queries.all(
    `INSERT INTO service (name, value) VALUES ('schema_version', ?), ('writers_from', ?)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    String(version),
    String(writers_from),
  );
}

export interface Writers {
  /** They end by themselves at their next transaction once the tables are no longer theirs. */
  readonly fenced: number;
  /** They would write on. */
  readonly unfenced: number;
}

/** Connections of programs of an older version than this one to this database. */
export async function olderWriters(queries: Queries, version: number): Promise<Writers> {
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
