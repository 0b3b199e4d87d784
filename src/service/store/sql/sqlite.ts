/** `Database` on SQLite. Runs on the thread that opened it; `service/store/thread-store.ts` starts a separate thread for it. */
import { chmodSync, closeSync, openSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { StorageUnavailable, messageOf } from '../../../errors.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { added_columns, after_columns, lasting_tables, schema_version, tables } from './tables.ts';

type Statement = Sqlite.Statement<SqlValue[], Row>;

const statements_max = 256;
const busy_timeout_ms = 2_000;

/**
 * `file`: everything is in the file. `memory`: only data that no kit sends again is in the file, and the rest in memory, so
 * that a service on the gateway of its kit does not write each position to the flash.
 */
export type Keeping = 'file' | 'memory';

/** Opens or creates the file. Throws `StorageUnavailable` with what to do about it. */
export function openSqlite(file: string, keeping: Keeping = 'file'): Database {
  const connection = connect(file, keeping);
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
  /** Serialises the work: there is one connection. */
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

/** The file holds sessions and hashes of keys: only its owner reads it. SQLite gives its other files the same mode. */
function keepPrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600));
  try {
    chmodSync(file, 0o600);
  } catch {
    // The file of another user, which this one may write: its mode is theirs.
  }
}

function connect(file: string, keeping: Keeping): Sqlite.Database {
  try {
    if (file !== ':memory:') keepPrivate(file);
    const connection = new Sqlite(keeping === 'file' ? file : ':memory:', { timeout: busy_timeout_ms });
    if (keeping === 'memory') connection.prepare('ATTACH ? AS kept').run(file);
    const home = keeping === 'file' ? 'main' : 'kept';
    connection.pragma(`${home}.journal_mode = WAL`);
    // Committed messages are acknowledged, and the kit may delete them: a power cut must not lose them.
    connection.pragma(`${home}.synchronous = FULL`);
    const found = Number(connection.pragma(`${home}.user_version`, { simple: true }));
    if (found > schema_version) {
      throw new StorageUnavailable(
        `${file} was written by a later version (${found}); install that version, or configure another file`,
      );
    }
    for (const table of tables) connection.exec(placed(table, home));
    addColumns(connection, home);
    for (const statement of after_columns) connection.exec(placed(statement, home));
    connection.pragma(`${home}.user_version = ${schema_version}`);
    return connection;
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    throw new StorageUnavailable(
      `cannot open ${file} (${messageOf(error)}); check the directory and its permissions`,
    );
  }
}

function addColumns(connection: Sqlite.Database, home: 'main' | 'kept'): void {
  for (const { table, column, type } of added_columns) {
    const place = lasting_tables.has(table) ? home : 'main';
    const known = connection.prepare<[string, string], { name: string }>(
      'SELECT name FROM pragma_table_info(?, ?)',
    );
    if (known.all(table, place).some(({ name }) => name === column)) continue;
    connection.exec(`ALTER TABLE ${place}.${table} ADD COLUMN ${column} ${type}`);
  }
}

/** The statement that makes a table, or an index, in the database where it belongs. */
function placed(statement: string, home: 'main' | 'kept'): string {
  return statement.replace(/IF NOT EXISTS (\w+)/u, (_, name: string) => {
    return `IF NOT EXISTS ${lasting_tables.has(name) ? home : 'main'}.${name}`;
  });
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
