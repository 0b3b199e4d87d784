/** `Database` on SQLite. Runs on the thread that opened it; `cloud/store/thread-store.ts` starts a separate thread for it. */
import {
  InvariantBroken,
  messageOf,
  SchemaRefused,
  StorageUnavailable,
  systemReason,
} from '../../platform/errors.ts';
import { every } from '../../platform/time.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import {
  additions,
  isReading,
  type Marks,
  raised,
  type Schema,
  schema as ours,
  schemaFault,
  type Upgrade,
} from './schema.ts';
import { texts } from '../texts.ts';
import { existsSync, mkdirSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { watchPlaces } from '../../platform/files/file-identity.ts';
import { keepPrivate } from '../../platform/files/private-file.ts';
import type { ServiceLog } from '../service-log.ts';

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
type Keeping = 'file' | 'memory';

interface SqliteOptions {
  readonly keeping?: Keeping;
  /** With `memory`: the file of the history; what has landed is in memory. Left out: the history is in memory as a whole. */
  readonly history_file?: string | undefined;
  readonly upgrade?: Upgrade;
  readonly schema?: Schema;
  /** Reports that a file was deleted or replaced while in use. */
  readonly error?: ServiceLog['error'] | undefined;
}

class Connection {
  readonly #file: string;
  readonly #options: SqliteOptions;
  #handle: Sqlite.Database;
  #displaced: () => readonly string[];
  readonly #prepared = new Map<string, Statement>();
  /** What a file held could not be saved. */
  #isLost = false;

  /** Opens or creates the files. Throws `StorageUnavailable` with what to do about it. */
  constructor(file: string, options: SqliteOptions) {
    this.#file = file;
    this.#options = options;
    this.#handle = connect(file, options);
    this.#displaced = this.#watch();
  }

  /** The databases that are in files, which other processes may open. */
  get homes(): readonly Home[] {
    return [...filesOf(this.#file, this.#options).keys()];
  }

  get handle(): Sqlite.Database {
    return this.#handle;
  }

  statement(sql: string): Statement {
    const known = this.#prepared.get(sql);
    if (known) return known;
    if (this.#prepared.size === statements_max) this.#prepared.clear();
    const made = this.#handle.prepare<SqlValue[], Row>(sql);
    this.#prepared.set(sql, made);
    return made;
  }

  /**
   * To be called before each use, outside of a transaction: what is written to a file that was deleted would be acknowledged and lost.
   * Rejects with `StorageUnavailable` while what it holds cannot be saved.
   */
  async keepPlaces(): Promise<void> {
    const displaced = this.#displaced();
    if (displaced.length === 0) return;
    try {
      for (const [home, file] of filesOf(this.#file, this.#options)) {
        if (partsOf(file).some((part) => displaced.includes(part))) await this.#renew(home, file, displaced);
      }
      this.#displaced = this.#watch();
      this.#isLost = false;
    } catch (error) {
      const reason = reasonOf(error);
      if (!this.#isLost) this.#options.error?.({ files: displaced, reason }, texts.file_not_rescued);
      this.#isLost = true;
      throw new StorageUnavailable(texts.file_gone(displaced.join(', '), reason), { cause: error });
    }
  }

  async #renew(home: Home, file: string, displaced: readonly string[]): Promise<void> {
    const [, log] = partsOf(file);
    // A power cut would lose what stands in a deleted log alone.
    const isInFile = !displaced.includes(file) && emptiesLog(this.#handle, home);
    const rescued = isInFile
      ? undefined
      : takePlace(await copyDisplaced(this.#handle, home, file), file, !displaced.includes(log));
    this.#prepared.clear();
    if (home === 'main') {
      this.#handle.close();
      this.#handle = connect(this.#file, this.#options);
    } else {
      this.#handle.exec(`DETACH ${home}`);
      attach(this.#handle, home, file);
    }
    if (rescued) this.#options.error?.(rescued, texts.file_rescued);
  }

  #watch(): () => readonly string[] {
    return watchPlaces([...filesOf(this.#file, this.#options).values()].flatMap(partsOf));
  }
}

/** The file, its log, and the index of it. */
function partsOf(file: string): readonly [file: string, log: string, index: string] {
  return [file, `${file}-wal`, `${file}-shm`];
}

/** Writes the whole log back into the file; false while another program reads an older state of it. */
function emptiesLog(handle: Sqlite.Database, home?: Home): boolean {
  const pragma = `${home === undefined ? '' : `${home}.`}wal_checkpoint(TRUNCATE)`;
  return Number(handle.pragma(pragma, { simple: true })) !== 1;
}

/** The databases of one connection, by the names under which they are attached. */
type Home = 'main' | 'kept' | 'history';

/** Where the lasting tables and those of the history are. */
interface Homes {
  readonly lasting: Home;
  readonly history: Home;
}

function homesOf({ keeping = 'file', history_file }: SqliteOptions): Homes {
  return {
    lasting: keeping === 'file' ? 'main' : 'kept',
    history: keeping === 'memory' && history_file !== undefined ? 'history' : 'main',
  };
}

/** The files of the databases that have one. */
function filesOf(file: string, options: SqliteOptions): ReadonlyMap<Home, string> {
  const { lasting, history } = homesOf(options);
  const files = new Map([[lasting, file]]);
  if (history !== lasting && options.history_file !== undefined) files.set(history, options.history_file);
  return files;
}

function connect(file: string, options: SqliteOptions): Sqlite.Database {
  const { keeping = 'file', history_file } = options;
  const files = filesOf(file, options);
  try {
    // Sessions, hashes of keys, and what kits have reported.
    for (const each of [file, history_file]) if (each !== undefined) keepPrivate(each);
    const connection = new Sqlite(keeping === 'file' ? file : ':memory:', { timeout: busy_timeout_ms });
    try {
      for (const [home, path] of files) attach(connection, home, path);
      prepare(connection, { ...options, homes: homesOf(options), files: [...files.keys()] });
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    throw new StorageUnavailable(texts.cannot_open(file, reasonOf(error)));
  }
}

function attach(connection: Sqlite.Database, home: Home, file: string): void {
  if (home !== 'main') connection.prepare(`ATTACH ? AS ${home}`).run(file);
  prepareFile(connection, home);
}

interface Preparing extends Pick<SqliteOptions, 'schema' | 'upgrade'> {
  readonly homes: Homes;
  readonly files: readonly Home[];
}

/** In one transaction: another process sees the tables of before or those of after, with their marks. */
function prepare(connection: Sqlite.Database, { homes, files, schema = ours, upgrade }: Preparing): void {
  connection.exec('BEGIN IMMEDIATE');
  const found = files.map((home) => ({ home, marks: marksOf(connection, home) }));
  for (const { marks } of found) {
    if (marks.writers_from > schema.version) throw new SchemaRefused(texts.later_version_file(marks.version));
    if (upgrade === 'never' && marks.version > 0 && marks.version < schema.version)
      throw new StorageUnavailable(texts.tables_not_upgraded);
  }
  const at = placesOf(schema, homes);
  for (const statement of additions(schema, presentIn(connection, homes), at)) connection.exec(statement);
  for (const { home, marks } of found) writeMarks(connection, home, raised(marks, schema));
  connection.exec('COMMIT');
}

/** In the header of each file: a thousand for each of `writers_from`, left out while it is the version, as before there were marks. */
export function marksOf(connection: Sqlite.Database, home: Home): Marks {
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

/** Tables, indexes and columns of all databases of the connection, with their names there. */
function presentIn(connection: Sqlite.Database, homes: Homes): ReadonlySet<string> {
  const present = [...new Set<Home>(['main', homes.lasting, homes.history])].flatMap((home) =>
    connection
      .prepare<[], { name: string; column: string | null }>(
        `SELECT found.name, info.name AS column FROM ${home}.sqlite_schema AS found
         LEFT JOIN pragma_table_info(found.name, '${home}') AS info`,
      )
      .all()
      .flatMap(({ name, column }) => [`${home}.${name}`, `${home}.${name}.${column}`]),
  );
  return new Set(present);
}

/** The name of a table, or an index, in the database where it belongs. */
function placesOf({ steps }: Schema, homes: Homes): (name: string) => string {
  const places = new Map<string, Home>();
  for (const each of steps.flatMap(({ adds }) => adds)) {
    if (each.kind === 'table') places.set(each.name, each.kept === 'kit' ? 'main' : homes[each.kept]);
    else if (each.kind === 'index') places.set(each.name, places.get(each.table) ?? 'main');
  }
  return (name) => `${places.get(name) ?? 'main'}.${name}`;
}

/** Pages for each turn of the event loop: on a gateway, it serves the vehicles, too. */
const pages_at_once = 500;

/** For the log. */
interface Rescued {
  readonly file: string;
  /** Where the file is now that was found in its place. */
  readonly moved_to?: string;
}

/**
 * Copies the database `home` of the connection, whose file was deleted or replaced while it is in use: SQLite does not notice that, and what is
 * acknowledged from then on would end with the process. Resolves with the path of the copy, which lies beside the file.
 */
async function copyDisplaced(connection: Sqlite.Database, home: string, file: string): Promise<string> {
  const copy = `${file}.rescued`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  for (const part of ['', '-journal', '-wal', '-shm']) rmSync(copy + part, { force: true });
  const { bavail, bsize } = statfsSync(dirname(file));
  const pages = Number(connection.pragma(`${home}.page_count`, { simple: true }));
  const bytes = pages * Number(connection.pragma(`${home}.page_size`, { simple: true }));
  if (bavail * bsize < bytes) throw new StorageUnavailable(texts.disk_full);
  keepPrivate(copy);
  const how = { attached: home, progress: () => pages_at_once };
  await connection.backup(copy, how);
  return copy;
}

/** Puts the copy in the place of the file. `ownsLog`: the log at this place is that of the displaced file. */
function takePlace(copy: string, file: string, ownsLog: boolean): Rescued {
  if (ownsLog || !existsSync(file)) rmSync(`${file}-wal`, { force: true });
  rmSync(`${file}-shm`, { force: true });
  const moved_to = `${file}.replaced`;
  const isTaken = existsSync(file);
  for (const part of isTaken ? ['', '-wal'] : []) {
    rmSync(moved_to + part, { recursive: true, force: true });
    if (existsSync(file + part)) renameSync(file + part, moved_to + part);
  }
  renameSync(copy, file);
  return { file, ...(isTaken && { moved_to }) };
}

/** Result codes of SQLite, the first that fits: an extended one begins with its primary one. */
const sentences: readonly (readonly [code: string, sentence: string])[] = [
  ['SQLITE_FULL', texts.disk_full],
  // SQLite allocates the index of its log at each start, and reports a full disk and a failing one with the same code.
  ['SQLITE_IOERR_SHMSIZE', texts.disk_full_or_failing],
  ['SQLITE_READONLY', texts.file_read_only],
  ['SQLITE_CORRUPT', texts.file_damaged],
  ['SQLITE_NOTADB', texts.file_damaged],
  ['SQLITE_IOERR', texts.disk_failing],
  ['SQLITE_CANTOPEN', texts.file_not_accessible],
  ['SQLITE_BUSY', texts.file_locked],
];

/** Why the file cannot be used, and what to do about it. */
function reasonOf(error: unknown): string {
  if (error instanceof Sqlite.SqliteError) {
    const { code, message } = error;
    const [, sentence = message] = sentences.find(([known]) => code.startsWith(known)) ?? [];
    return `${sentence} (${code}: ${message})`;
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') return texts.disk_full;
  return code === '' ? messageOf(error) : `${systemReason(error)}; ${texts.check_directory}`;
}

/** Errors of SQLite may end by themselves, or when someone makes room; others are faults of the program. */
function unavailable(error: unknown): Error {
  if (error instanceof Sqlite.SqliteError) return new StorageUnavailable(reasonOf(error));
  return error instanceof Error ? error : new StorageUnavailable(messageOf(error));
}

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
