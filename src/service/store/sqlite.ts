/** SQLite behind `Database`. Runs on the thread that made it; `open-store.ts` gives it a thread of its own. */
import Sqlite from 'better-sqlite3';
import { StorageUnavailable, messageOf } from '../../errors.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { schema_version, tables } from './tables.ts';

type Statement = Sqlite.Statement<SqlValue[], Row>;

const statements_max = 256;
const busy_timeout_ms = 2_000;

/** Opens or makes the file. Throws `StorageUnavailable` with what to do about it. */
export function openSqlite(file: string): Database {
  const connection = connect(file);
  const prepared = new Map<string, Statement>();
  const statement = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known) return known;
    if (prepared.size === statements_max) prepared.clear();
    const made = connection.prepare<SqlValue[], Row>(sql);
    prepared.set(sql, made);
    return made;
  };
  const queries: Queries = {
    all: async (sql: string, ...values: readonly SqlValue[]) => run(statement(sql), values),
  };
  /** Work is done one after the other: there is one connection. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
  return {
    all: async (sql, ...values) => inTurn(async () => run(statement(sql), values)),
    transaction: async (work) =>
      inTurn(async () => {
        begin(connection);
        try {
          const value = await work(queries);
          connection.exec('COMMIT');
          return value;
        } catch (error) {
          if (connection.inTransaction) connection.exec('ROLLBACK');
          throw unavailable(error);
        }
      }),
    close: async () => inTurn(async () => void connection.close()),
  };
}

function connect(file: string): Sqlite.Database {
  try {
    const connection = new Sqlite(file, { timeout: busy_timeout_ms });
    connection.pragma('journal_mode = WAL');
    // What was committed was acknowledged to the kit, which may have forgotten it: a power cut must not lose it.
    connection.pragma('synchronous = FULL');
    const found = Number(connection.pragma('user_version', { simple: true }));
    if (found > schema_version) {
      throw new StorageUnavailable(
        `${file} was written by a later version (${found}); install that version, or name another file`,
      );
    }
    for (const table of tables) connection.exec(table);
    connection.pragma(`user_version = ${schema_version}`);
    return connection;
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    throw new StorageUnavailable(
      `${file} cannot be opened (${messageOf(error)}); check the folder and its rights`,
    );
  }
}

function begin(connection: Sqlite.Database): void {
  try {
    connection.exec('BEGIN IMMEDIATE');
  } catch (error) {
    throw unavailable(error);
  }
}

/** Statements that change rows answer them only with RETURNING. */
function run(statement: Statement, values: readonly SqlValue[]): readonly Row[] {
  try {
    if (statement.reader) return statement.all(...values);
    statement.run(...values);
    return [];
  } catch (error) {
    throw unavailable(error);
  }
}

function unavailable(error: unknown): Error {
  if (error instanceof Sqlite.SqliteError) return new StorageUnavailable(error.message);
  return error instanceof Error ? error : new StorageUnavailable(messageOf(error));
}
