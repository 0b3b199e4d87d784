/** `Database` on SQLite. Runs on the thread that opened it; `service/store/thread-store.ts` starts a separate thread for it. */
import Sqlite from 'better-sqlite3';
import { InvariantBroken, SchemaRefused, StorageUnavailable } from '../../../errors.ts';
import { keepPrivate } from '../../../platform/private-file.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { lasting_history } from './history-tables.ts';
import {
  isReading,
  type Marks,
  raised,
  type Schema,
  schema as ours,
  schemaFault,
  type Upgrade,
} from './schema.ts';
import { reasonOf, unavailable } from './sqlite-fault.ts';
import { lasting_tables } from './tables.ts';
import { texts } from '../../texts.ts';

type Statement = Sqlite.Statement<SqlValue[], Row>;

const statements_max = 256;
const busy_timeout_ms = 2_000;
/**
 * Of the history on a gateway: a round changes a few rows of each index, and each page that it touches reaches the flash. With pages of
 * 4,096 bytes it would be half as much again.
 */
const history_page_bytes = 1_024;

/**
 * `file`: everything is in the file. `memory`: only data that no kit sends again is in the file, and the rest in memory, so
 * that a service on the gateway of its kit does not write each position to the flash.
 */
export type Keeping = 'file' | 'memory';

export interface SqliteOptions {
  readonly keeping?: Keeping;
  /** With `memory`: the file of the history; what has landed is in memory. Left out: the history is in memory as a whole. */
  readonly history_file?: string | undefined;
  readonly upgrade?: Upgrade;
  readonly schema?: Schema;
}

/** Opens or creates the file. Throws `StorageUnavailable` with what to do about it. */
export function openSqlite(file: string, options: SqliteOptions = {}): Database {
  const { schema = ours } = options;
  const { connection, files } = connect(file, options);
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
  const fault = (): string | undefined =>
    files.map((home) => schemaFault(marksOf(connection, home), schema)).find((each) => each !== undefined);
  const transaction: Database['transaction'] = async (work) =>
    inTurn(async () => {
      begin(connection);
      try {
        // No other process can change the tables before the COMMIT.
        const reason = fault();
        if (reason !== undefined) throw new StorageUnavailable(reason);
        const value = await work(queries);
        connection.exec('COMMIT');
        return value;
      } catch (error) {
        if (connection.inTransaction) connection.exec('ROLLBACK');
        throw unavailable(error);
      }
    });
  return {
    all: async (sql, ...values) => {
      if (!isReading(sql)) return transaction(async () => queries.all(sql, ...values));
      return inTurn(async () => {
        if (!statement(sql).readonly)
          throw new InvariantBroken(`a statement writes that seems to read: ${sql}`);
        return queries.all(sql, ...values);
      });
    },
    transaction,
    // One connection does everything, in the order in which it was asked.
    transactionAhead: transaction,
    // Deleted rows are overwritten with zeros (secure_delete); the log still has their pages.
    forget: async () => inTurn(async () => emptyLog(connection)),
    schemaFault: async () => inTurn(async () => fault()),
    close: async () => inTurn(async () => void connection.close()),
  };
}

/** The databases of one connection, by the names under which they are attached. */
type Home = 'main' | 'kept' | 'history';

/** Where the lasting tables and those of the history are. */
interface Homes {
  readonly lasting: Home;
  readonly history: Home;
}

interface Connected {
  readonly connection: Sqlite.Database;
  /** The databases that are in files, which other processes may open. */
  readonly files: readonly Home[];
}

function connect(file: string, options: SqliteOptions): Connected {
  const { keeping = 'file', history_file } = options;
  const homes: Homes = {
    lasting: keeping === 'file' ? 'main' : 'kept',
    history: keeping === 'memory' && history_file !== undefined ? 'history' : 'main',
  };
  try {
    // Sessions, hashes of keys, and what kits have reported.
    for (const each of [file, history_file]) if (each !== undefined) keepPrivate(each);
    const connection = new Sqlite(keeping === 'file' ? file : ':memory:', { timeout: busy_timeout_ms });
    try {
      const files = attach(connection, homes, { kept: file, history: history_file ?? '' });
      prepare(connection, { homes, files, ...options });
      return { connection, files };
    } catch (error) {
      connection.close();
      throw error;
    }
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    throw new StorageUnavailable(texts.cannot_open(file, reasonOf(error)));
  }
}

function attach(
  connection: Sqlite.Database,
  homes: Homes,
  names: Readonly<Record<'kept' | 'history', string>>,
): readonly Home[] {
  const files = [...new Set<Home>([homes.lasting, homes.history])];
  for (const home of files) {
    if (home !== 'main') connection.prepare(`ATTACH ? AS ${home}`).run(names[home]);
    prepareFile(connection, home);
  }
  return files;
}

interface Preparing extends Pick<SqliteOptions, 'schema' | 'upgrade'> {
  readonly homes: Homes;
  readonly files: readonly Home[];
}

/** In one transaction: another process sees the tables of before or those of after, with their marks. */
function prepare(connection: Sqlite.Database, { homes, files, schema = ours, upgrade }: Preparing): void {
  begin(connection);
  const found = files.map((home) => ({ home, marks: marksOf(connection, home) }));
  for (const { marks } of found) {
    if (marks.writers_from > schema.version) throw new SchemaRefused(texts.later_version_file(marks.version));
    if (upgrade === 'never' && marks.version > 0 && marks.version < schema.version)
      throw new StorageUnavailable(texts.tables_not_upgraded);
  }
  for (const table of schema.tables) connection.exec(placed(table, homes));
  addColumns(connection, schema, homes);
  for (const statement of schema.after_columns) connection.exec(placed(statement, homes));
  for (const { home, marks } of found) writeMarks(connection, home, raised(marks, schema));
  connection.exec('COMMIT');
}

/** In the header of each file: a thousand for each of `writers_from`, left out while it is the version, as before there were marks. */
function marksOf(connection: Sqlite.Database, home: Home): Marks {
  const both = Number(connection.pragma(`${home}.user_version`, { simple: true }));
  const version = both % 1_000;
  return { version, writers_from: both < 1_000 ? version : Math.floor(both / 1_000) };
}

function writeMarks(connection: Sqlite.Database, home: Home, { version, writers_from }: Marks): void {
  const both = writers_from === version ? version : writers_from * 1_000 + version;
  connection.pragma(`${home}.user_version = ${both}`);
}

function prepareFile(connection: Sqlite.Database, home: Home): void {
  // A file that exists keeps its pages.
  if (home === 'history') connection.pragma(`${home}.page_size = ${history_page_bytes}`);
  connection.pragma(`${home}.journal_mode = WAL`);
  // Committed messages are acknowledged, and the kit may delete them: a power cut must not lose them.
  connection.pragma(`${home}.synchronous = FULL`);
  connection.pragma(`${home}.secure_delete = ON`);
}

function addColumns(connection: Sqlite.Database, { added_columns }: Schema, homes: Homes): void {
  for (const { table, column, type } of added_columns) {
    const place = homeOf(table, homes);
    const known = connection.prepare<[string, string], { name: string }>(
      'SELECT name FROM pragma_table_info(?, ?)',
    );
    if (known.all(table, place).some(({ name }) => name === column)) continue;
    connection.exec(`ALTER TABLE ${place}.${table} ADD COLUMN ${column} ${type}`);
  }
}

/** The statement that makes a table, or an index, in the database where it belongs. */
function placed(statement: string, homes: Homes): string {
  return statement.replace(
    /IF NOT EXISTS (\w+)/u,
    (_, name: string) => `IF NOT EXISTS ${homeOf(name, homes)}.${name}`,
  );
}

function homeOf(name: string, { lasting, history }: Homes): Home {
  if (lasting_tables.has(name)) return lasting;
  return lasting_history.has(name) ? history : 'main';
}

/** Another program that reads an older state of the file keeps the log from being emptied. */
function emptyLog(connection: Sqlite.Database): void {
  const isBusy = Number(connection.pragma('wal_checkpoint(TRUNCATE)', { simple: true })) === 1;
  if (isBusy) throw new StorageUnavailable(texts.erasure_is_read);
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
