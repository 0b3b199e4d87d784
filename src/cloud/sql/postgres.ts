/** PostgreSQL behind `Database`, for fleets and for replicas that share one database. */
import { DatabaseError, Pool, type PoolClient } from 'pg';
import { InvariantBroken, messageOf, StorageBusy, StorageUnavailable } from '../../platform/errors.ts';
import { addressesOf } from '../../platform/host-list.ts';
import { Semaphore } from '../../platform/semaphore.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { allSettled } from './many-rows.ts';
import { nameOfWriter, prepareTables, readMarks, schema_lock } from './postgres-tables.ts';
import { isReading, type Schema, schema as ours, schemaFault, type Upgrade } from './schema.ts';
import { erasable_tables } from './tables.ts';
import { texts } from '../texts.ts';

/** The connection ended, or the server aborted for another transaction: a retry may succeed at once. */
class Interrupted extends StorageUnavailable {}

/** A table has other columns than when the statement was prepared, and nothing was done. */
class PlanOutdated extends Interrupted {}

/** SQLSTATE classes of permanent errors: data, integrity, syntax. */
const permanent: ReadonlySet<string> = new Set(['22', '23', '42']);

/** SQLSTATE: the server is a standby, or was made one. */
const read_only = '25006';
/** SQLSTATE: another transaction holds the lock. */
const lock_not_available = '55P03';
/** The routine of the server that finds a prepared statement outdated; its code stands for much else, and its message is translated. */
const plan_outdated = 'RevalidateCachedQuery';
/** The message of `pg` after its limit for a query. */
const timed_out = 'Query read timeout';

/** What an operator has to do, by SQLSTATE. None of these concerns the message that was to be stored. */
const remedies: Readonly<Record<string, string>> = {
  [read_only]: texts.database_standby,
  '28000': texts.postgres_login,
  '28P01': texts.postgres_login,
  '3D000': texts.postgres_no_database,
  '42501': texts.postgres_rights,
  '42P01': texts.postgres_tables,
  '53100': texts.postgres_disk,
  '53300': texts.postgres_connections,
};

/** Another server may answer: this one ended the connection, is not reachable, or is a standby. */
function isOfServer(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return !(error instanceof InvariantBroken);
  return error.code === read_only || error.code?.startsWith('57P') === true;
}

/** Converts errors: a permanent one is a fault of the statement or a value; any other may be retried. */
function asOurs(error: unknown): Error {
  if (error instanceof StorageUnavailable || error instanceof InvariantBroken) return error;
  const code = error instanceof DatabaseError ? (error.code ?? '') : '';
  const reason = messageOf(error) || 'not reachable';
  const remedy = remedies[code];
  if (remedy !== undefined) return new Interrupted(`PostgreSQL: ${reason}; ${remedy}`);
  if (permanent.has(code.slice(0, 2)))
    return new InvariantBroken(`PostgreSQL rejected a statement: ${reason}`);
  if (code === lock_not_available) return new StorageBusy(`PostgreSQL: ${reason}`);
  const sentence = `PostgreSQL: ${reason}; check the server and "database"`;
  if (error instanceof DatabaseError && error.routine === plan_outdated) return new PlanOutdated(sentence);
  // A retry would wait as long again.
  return reason === timed_out ? new StorageUnavailable(sentence) : new Interrupted(sentence);
}

export interface PostgresOptions {
  /**
   * `postgres://user@host:port/database`; parameters after `?` as in libpq, such as `sslmode=verify-full`. Several hosts, with commas
   * between them: the writable one is used.
   */
  readonly url: string;
  readonly password: string | undefined;
}

/** Reads beside transactions; a server has 100 connections by default, and replicas share them. */
const connections_max = 8;
/** Of these, kept for storing what kits sent: two transactions, one of them for kits whose rows others have locked. */
const connections_ahead = 2;
/** Other work that waits so long for a connection ends with `StorageBusy`. */
const slot_wait_ms = 10_000;
const connect_timeout_ms = 5_000;
/** A server without an answer for this long counts as lost; the statements of a commit wait for each other within it. */
const query_timeout_ms = 30_000;
const idle_timeout_ms = 60_000;
/** A transaction takes milliseconds. A transaction that waits longer for a lock is rolled back, so that others can proceed. */
const lock_timeout_ms = 2_000;
/** After this the server ends a transaction whose process hangs, since others wait for its rows. */
const idle_in_transaction_ms = 15_000;
/** Attempts for a transaction that certainly was not committed, for an external cause. */
const attempts_max = 3;
/** Statements that the server keeps prepared for each connection; there are fewer than 100. */
const texts_max = 200;

/** SQLSTATE of a warning of no special class. */
const warning_code = '01000';

/** Settings of a connection to one host. Its 64-bit integers come as text, which the readers of rows turn into numbers. */
export function connectionOf(
  { url, password }: PostgresOptions,
  { version }: Pick<Schema, 'version'> = ours,
) {
  return {
    connectionString: addressWith(url, password),
    connectionTimeoutMillis: connect_timeout_ms,
    query_timeout: query_timeout_ms,
    keepAlive: true,
    application_name: nameOfWriter(version),
  };
}

/** `pg` ignores its option `password` beside an address: what the address lacks overrides it with nothing. */
function addressWith(url: string, password: string | undefined): string {
  if (password === undefined) return url;
  return `${url}${url.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`;
}

/** Lends a connection to the work, and closes it after an error that leaves its state unknown. */
type Lend = <T>(work: (client: PoolClient) => Promise<T>, isKnown: (error: unknown) => boolean) => Promise<T>;

interface Servers {
  readonly pool: Pool;
  /** For storing what kits sent: it has reserved connections, so that it does not wait for other work. */
  readonly lendAhead: Lend;
  /** For all other work, which shares the rest. */
  readonly lend: Lend;
  /** Runs it on a connection; where the server failed, the following connections use the next one. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T>;
}

function serversOf(options: PostgresOptions, schema: Schema): Servers {
  const addresses = new Addresses(options.url);
  const pool = new Pool({
    ...connectionOf({ ...options, url: addresses.current }, schema),
    // Statements are pipelined: a commit reads many kits at once.
    pipeline: true,
    max: connections_max,
    idleTimeoutMillis: idle_timeout_ms,
    ...(addresses.count > 1 && { verify: refuseStandby }),
  });
  // A connection that breaks while idle is replaced at the next statement.
  pool.on('error', () => undefined);
  // A connection that breaks within a transaction fails its next statement.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const run: Servers['run'] = async (work) => {
    const { current } = addresses;
    pool.options.connectionString = addressWith(current, options.password);
    try {
      return await work();
    } catch (error) {
      if (isOfServer(error)) addresses.failed(current);
      throw asOurs(error);
    }
  };
  const connect = async (): Promise<PoolClient> => {
    for (let left = addresses.count - 1; ; left -= 1) {
      try {
        return await run(async () => pool.connect());
      } catch (error) {
        if (left === 0) throw error;
      }
    }
  };
  const lendAhead: Lend = async (work, isKnown) => {
    const client = await connect();
    try {
      const value = await work(client);
      client.release();
      return value;
    } catch (error) {
      client.release(!isKnown(error));
      throw error;
    }
  };
  const slots = new Semaphore(connections_max - connections_ahead, {
    wait_max_ms: slot_wait_ms,
    refusal: () => new StorageBusy(texts.database_busy),
  });
  const lend: Lend = async (...asked) => slots.run(async () => lendAhead(...asked));
  return { pool, lendAhead, lend, run };
}

interface Opening {
  /** False: the tables are taken as they are, and every version may write them. */
  readonly prepares?: boolean;
  readonly upgrade?: Upgrade;
  readonly schema?: Schema;
}

/** Connects and makes the tables, unless `prepares` is false. Rejects with `StorageUnavailable` and what to do about it. */
export async function openPostgres(
  options: PostgresOptions,
  { prepares = true, upgrade = 'alone', schema = ours }: Opening = {},
): Promise<Database> {
  const { pool, lendAhead, lend, run } = serversOf(options, schema);
  const statements = new Statements();
  const ask = async (client: PoolClient, sql: string, values: readonly SqlValue[]) =>
    run(async () => {
      try {
        const { rows } = await client.query<Row>({ ...statements.of(sql), values: values.map(storable) });
        return rows;
      } catch (error) {
        if (asOurs(error) instanceof PlanOutdated) statements.renew();
        throw error;
      }
    });
  const commit: Connecting['commit'] = async (client) =>
    run(async () => (await client.query(statements.of('COMMIT'))).command);
  // What a statement was refused for does not concern its connection.
  const askOnce: Queries['all'] = async (sql, ...values) =>
    lend(
      async (client) => ask(client, sql, values),
      (error) => !(error instanceof StorageUnavailable),
    );
  const read = preparingAnew(askOnce);
  const database = (fence?: Schema): Database => {
    const transaction: Database['transaction'] = async (work) => transact({ lend, ask, commit, fence }, work);
    return {
      all: async (sql, ...values) =>
        isReading(sql) ? read(sql, ...values) : transaction(async (queries) => queries.all(sql, ...values)),
      transaction,
      transactionAhead: async (work) => transact({ lend: lendAhead, ask, commit, fence }, work),
      forget: async () => {
        for (const table of erasable_tables) await read(`VACUUM ${table}`);
      },
      schemaFault: async () => schemaFault(await readMarks({ all: read }), schema),
      close: async () => pool.end(),
    };
  };
  if (!prepares) return database();
  try {
    await prepareTables(database(), { schema, upgrade, wait_max_ms: query_timeout_ms });
    return database(schema);
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** Asks once more when a table had other columns than when the statement was prepared. */
function preparingAnew(ask: Queries['all']): Queries['all'] {
  return async (sql, ...values) => {
    try {
      return await ask(sql, ...values);
    } catch (error) {
      if (!(error instanceof PlanOutdated)) throw error;
      return ask(sql, ...values);
    }
  };
}

/** The next host may be the primary. */
class Standby extends Interrupted {}

interface Connecting {
  readonly lend: Lend;
  readonly ask: (client: PoolClient, sql: string, values: readonly SqlValue[]) => Promise<readonly Row[]>;
  /** Resolves with what the server did. */
  readonly commit: (client: PoolClient) => Promise<string>;
  /** Of the program that writes; undefined: the transaction looks at no marks. */
  readonly fence: Schema | undefined;
}

/** Of several hosts, one is the primary: it takes writes. */
function refuseStandby(client: PoolClient, done: (error?: Error) => void): void {
  client.query<{ transaction_read_only: string }>('SHOW transaction_read_only', (error: unknown, result) => {
    if (error instanceof Error) done(error);
    else
      done(result.rows[0]?.transaction_read_only === 'on' ? new Standby(texts.database_standby) : undefined);
  });
}

/** Runs a transaction and retries it when it certainly was not committed: its connection ended, or a deadlock. */
async function transact<T>(
  { lend, ask, commit, fence }: Connecting,
  work: (queries: Queries) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    let isCommitting = false;
    const attempted = lend(
      async (client) => {
        const queries: Queries = { all: async (sql, ...values) => ask(client, sql, values) };
        await begin(queries, fence);
        const value = await work(queries);
        isCommitting = true;
        await committed(client, commit);
        return value;
      },
      // Closing the connection makes the server roll back.
      () => false,
    );
    try {
      return await attempted;
    } catch (error) {
      const mayHelp = error instanceof Interrupted && !isCommitting;
      if (!mayHelp || attempt === attempts_max) throw error;
    }
  }
}

/**
 * A COMMIT whose wait for the standby was cancelled, as by `pg_cancel_backend`, succeeds with a warning: the primary alone has it. What
 * follows is the same as for an unknown outcome: the messages are stored again, which counts once and waits for the standby again.
 */
async function committed(client: PoolClient, commit: Connecting['commit']): Promise<void> {
  let warning: string | undefined;
  const note = ({
    code,
    message,
  }: {
    readonly code?: string | undefined;
    readonly message?: string | undefined;
  }): void => {
    if (code === warning_code) warning = message;
  };
  client.on('notice', note);
  try {
    // After a statement that failed, COMMIT succeeds as well, and rolls back.
    const done = await commit(client);
    if (done !== 'COMMIT')
      throw new InvariantBroken(`a transaction went on after a statement that failed: ${done}`);
  } finally {
    client.off('notice', note);
  }
  if (warning !== undefined) throw new StorageUnavailable(texts.commit_not_replicated(warning));
}

/**
 * Sends all statements without waiting: the connection pipelines them. With a fence the transaction shares the lock that an upgrade needs for
 * itself: the marks that it reads then hold until its COMMIT. Each statement sees what was committed before it, also one that has waited.
 */
async function begin(queries: Queries, fence: Schema | undefined): Promise<void> {
  const begun = [
    queries.all('BEGIN ISOLATION LEVEL READ COMMITTED'),
    queries.all(
      `SELECT set_config('lock_timeout', ?, true), set_config('idle_in_transaction_session_timeout', ?, true)`,
      String(lock_timeout_ms),
      String(idle_in_transaction_ms),
    ),
  ];
  if (!fence) {
    await Promise.all(begun);
    return;
  }
  const locked = queries
    .all(`SELECT pg_advisory_xact_lock_shared(${schema_lock})`)
    .catch((error: unknown) => {
      // No kit has these rows, and no other one could be stored meanwhile.
      throw error instanceof StorageBusy ? new StorageUnavailable(texts.schema_changing) : error;
    });
  const marks = readMarks(queries);
  await allSettled<unknown>([...begun, locked, marks]);
  const fault = schemaFault(await marks, fence);
  if (fault !== undefined) throw new StorageUnavailable(fault);
}

interface Statement {
  readonly text: string;
  /** Under this name the server keeps it prepared. */
  readonly name?: string;
}

class Statements {
  readonly #known = new Map<string, Statement>();
  #renewals = 0;

  /** Replaces `?` by `$1` and so on. No statement has a question mark in a literal. */
  of(sql: string): Statement {
    const made = this.#known.get(sql);
    if (made) return made;
    let count = 0;
    const text = sql.replace(/\?/gu, () => `$${(count += 1)}`);
    // Lists vary in length: each length would need its own prepared statement.
    const isFixed = !sql.includes('IN (?') && this.#known.size < texts_max;
    if (!isFixed) return { text };
    const statement = { text, name: `s${this.#renewals}_${this.#known.size}` };
    this.#known.set(sql, statement);
    return statement;
  }

  /** Another version has changed a table: every connection prepares its statements again, under other names. */
  renew(): void {
    this.#known.clear();
    this.#renewals += 1;
  }
}

/** Replaces NUL, which PostgreSQL rejects in texts: one kit must not make the commit of others fail. */
function storable(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}

/**
 * The server in use of a PostgreSQL that several servers hold: `pg` takes a single host, so the choice is made here. All connections use the
 * same one until it fails.
 */
export class Addresses {
  readonly #all: readonly string[];
  #at = 0;

  constructor(url: string) {
    this.#all = addressesOf(url);
  }

  get count(): number {
    return this.#all.length;
  }

  get current(): string {
    return this.#all[this.#at] ?? '';
  }

  /** Changes to the next server, unless another connection has done so meanwhile. */
  failed(address: string): void {
    if (address === this.current) this.#at = (this.#at + 1) % this.#all.length;
  }
}
