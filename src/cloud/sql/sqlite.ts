/** `Database` on SQLite. Runs on the thread that opened it; `cloud/store/thread-store.ts` starts a separate thread for it. */
import { InvariantBroken, StorageUnavailable } from '../../platform/errors.ts';
import { every } from '../../platform/time.ts';
import { Connection, emptiesLog, marksOf, type SqliteOptions, type Statement } from './connection.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { isReading, schema as ours, schemaFault } from './schema.ts';
import { unavailable } from './connection.ts';
import { texts } from '../texts.ts';

const look_every_ms = 1_000;

/** Opens or creates the file. Throws `StorageUnavailable` with what to do about it. */
export function openSqlite(file: string, options: SqliteOptions = {}): Database {
  const { schema = ours } = options;
  const connection = new Connection(file, options);
  const queries: Queries = {
    all: async (sql: string, ...values: readonly SqlValue[]) => run(connection.statement(sql), values),
  };
  /** Serialises the work: there is one connection. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(async () => connection.keepPlaces()).then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
  const fault = (): string | undefined =>
    connection.homes
      .map((home) => schemaFault(marksOf(connection.handle, home), schema))
      .find((each) => each !== undefined);
  const transaction: Database['transaction'] = async (work) =>
    inTurn(async () => {
      begin(connection);
      try {
        // No other process can change the tables before the COMMIT.
        const reason = fault();
        if (reason !== undefined) throw new StorageUnavailable(reason);
        const value = await work(queries);
        connection.handle.exec('COMMIT');
        return value;
      } catch (error) {
        if (connection.handle.inTransaction) connection.handle.exec('ROLLBACK');
        throw unavailable(error);
      }
    });
  const ends = new AbortController();
  // While nothing is asked, nothing else notices that a file was deleted.
  every(look_every_ms, ends.signal, () => void inTurn(async () => undefined).catch(() => undefined));
  return {
    all: async (sql, ...values) => {
      if (!isReading(sql)) return transaction(async () => queries.all(sql, ...values));
      return inTurn(async () => {
        if (!connection.statement(sql).readonly)
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
    close: async () => {
      ends.abort();
      await inTurn(async () => undefined).catch(() => undefined);
      connection.handle.close();
    },
  };
}

/** Another program that reads an older state of the file keeps the log from being emptied. */
function emptyLog({ handle }: Connection): void {
  if (!emptiesLog(handle)) throw new StorageUnavailable(texts.erasure_is_read);
}

function begin({ handle }: Connection): void {
  try {
    handle.exec('BEGIN IMMEDIATE');
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
