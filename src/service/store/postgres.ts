/** PostgreSQL behind `Database`, for fleets and for replicas that share one database. */
import { DatabaseError, Pool, type PoolClient } from 'pg';
import { InvariantBroken, messageOf, StorageUnavailable } from '../../errors.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { schema_version, tables } from './tables.ts';

export interface PostgresOptions {
  /** `postgres://user@host:port/database`; what follows `?` is as libpq knows it, such as `sslmode=verify-full`. */
  readonly url: string;
  readonly password: string | undefined;
}

/** Reads beside transactions; a server has 100 connections unless told otherwise, and replicas share them. */
const connections_max = 8;
const connect_timeout_ms = 5_000;
/** A server that does not answer for so long is as good as gone; a commit's questions wait for each other within it. */
const query_timeout_ms = 30_000;
const idle_timeout_ms = 60_000;
/** Statements that the server keeps prepared for each connection; there are fewer than 100. */
const texts_max = 200;
/** Any number will do that all versions agree on: one replica at a time looks after the tables. */
const schema_lock = 7_236_401;

/** SQLSTATE classes of a statement or value that will never be taken: data, integrity, syntax. */
const hopeless: ReadonlySet<string> = new Set(['22', '23', '42']);

/** Settings of a connection. Its 64-bit integers come as text, which the readers of rows turn into numbers. */
export function connectionOf({ url, password }: PostgresOptions) {
  return {
    connectionString: url,
    ...(password !== undefined && { password }),
    connectionTimeoutMillis: connect_timeout_ms,
    query_timeout: query_timeout_ms,
    keepAlive: true,
    application_name: 'kit-connector',
  };
}

/** Connects and makes the tables. Rejects with `StorageUnavailable` and what to do about it. */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const pool = new Pool({
    ...connectionOf(options),
    // Questions are sent without waiting for the answers before them: a commit asks for many kits at once.
    pipeline: true,
    max: connections_max,
    idleTimeoutMillis: idle_timeout_ms,
  });
  // A connection that breaks while it is idle is replaced at the next question.
  pool.on('error', () => undefined);
  const statements = statementMaker();
  const ask = async (client: Pick<PoolClient, 'query'>, sql: string, values: readonly SqlValue[]) => {
    try {
      const { rows } = await client.query<Row>({ ...statements(sql), values: values.map(storable) });
      return rows;
    } catch (error) {
      throw asOurs(error);
    }
  };
  const database: Database = {
    all: async (sql, ...values) => ask(pool, sql, values),
    transaction: async (work) => {
      const client = await pool.connect().catch((error: unknown) => {
        throw asOurs(error);
      });
      const queries: Queries = { all: async (sql, ...values) => ask(client, sql, values) };
      try {
        await queries.all('BEGIN');
        const value = await work(queries);
        await queries.all('COMMIT');
        client.release();
        return value;
      } catch (error) {
        // Nobody knows in what state the connection is; the server forgets the transaction with it.
        client.release(true);
        throw error;
      }
    },
    close: async () => pool.end(),
  };
  await prepareTables(database).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  return database;
}

async function prepareTables(database: Database): Promise<void> {
  await database.transaction(async (queries) => {
    await queries.all('SELECT pg_advisory_xact_lock(?)', schema_lock);
    for (const table of tables) await queries.all(table);
    const [row] = await queries.all(`SELECT value FROM service WHERE name = 'schema_version'`);
    const found = Number(row?.['value'] ?? 0);
    if (found > schema_version) {
      throw new StorageUnavailable(
        `the database was written by a later version (${found}); install that version, or name another database`,
      );
    }
    await queries.all(
      `INSERT INTO service (name, value) VALUES ('schema_version', ?)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      String(schema_version),
    );
  });
}

interface Statement {
  readonly text: string;
  /** Under this name the server keeps it prepared. */
  readonly name?: string;
}

/** Writes `$1` where our statements say `?`. None of them has a question mark in a literal. */
function statementMaker(): (sql: string) => Statement {
  const known = new Map<string, Statement>();
  return (sql) => {
    const made = known.get(sql);
    if (made) return made;
    let count = 0;
    const text = sql.replace(/\?/gu, () => `$${(count += 1)}`);
    // Lists have any number of entries: each would be a statement of its own.
    const isFixed = !sql.includes('IN (?');
    const statement = isFixed && known.size < texts_max ? { text, name: `s${known.size}` } : { text };
    if (isFixed && known.size < texts_max) known.set(sql, statement);
    return statement;
  };
}

/** PostgreSQL takes no NUL in a text, and a kit that sends one must not stop the others that are committed with it. */
function storable(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}

/** What cannot heal is the fault of a statement or a value; anything else is worth another try. */
function asOurs(error: unknown): Error {
  if (error instanceof StorageUnavailable || error instanceof InvariantBroken) return error;
  const isHopeless = error instanceof DatabaseError && hopeless.has(error.code?.slice(0, 2) ?? '');
  const reason = messageOf(error) || 'it cannot be reached';
  if (isHopeless) return new InvariantBroken(`PostgreSQL refuses a statement: ${reason}`);
  return new StorageUnavailable(`PostgreSQL: ${reason}; check the server and "database"`);
}
