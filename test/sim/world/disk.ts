/**
 * The disks below SQLite. Files are real, so that what a kill or a power cut leaves is what SQLite finds; faults are put
 * between the program and SQLite, as the error codes that SQLite itself would give.
 */
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import type { Rng } from './rng.ts';

export interface DiskState {
  /** SQLite's code for whatever touches the file; undefined: all is well. */
  fault: 'SQLITE_IOERR_WRITE' | 'SQLITE_READONLY' | 'SQLITE_IOERR_FSYNC' | undefined;
  /** A transaction is carried out, and its sync is answered with an error: what it did is found when the file is opened again. */
  isUnsure: boolean;
  /** Somebody else has filled it. */
  full: boolean;
  free_bytes: number;
}

/** One disk: a folder whose name changes with each incarnation of the file system after a kill. */
export class Disk {
  readonly state: DiskState = {
    fault: undefined,
    isUnsure: false,
    full: false,
    free_bytes: 8 * 1024 ** 3,
  };
  readonly #root: string;
  readonly #opened = new Set<Database.Database>();
  #generation = 0;
  /** The log of the database before and after its last transaction, to be torn between the two. */
  #last: { readonly file: string; readonly before: number; readonly after: number } | undefined;

  constructor(root: string) {
    this.#root = root;
    mkdirSync(this.folder, { recursive: true });
    disks.set(this.folder, this);
  }

  get folder(): string {
    return join(this.#root, String(this.#generation));
  }

  opened(db: Database.Database): void {
    this.#opened.add(db);
  }

  /** The connection of the process that has the file open. */
  connectionTo(file: string): Database.Database | undefined {
    return [...this.#opened].find((db) => db.open && db.name === file);
  }

  wrote(file: string, before: number, after: number): void {
    this.#last = { file, before, after };
  }

  /** The process is gone: its files stay as they are, and its handles are of no use to anybody. */
  kill(): void {
    const from = this.folder;
    disks.delete(from);
    this.#generation += 1;
    const to = this.folder;
    mkdirSync(to, { recursive: true });
    for (const name of fs.readdirSync(from)) {
      // The index of the log is shared memory, which ends with its last process.
      if (!name.endsWith('-shm') && statSync(join(from, name)).isFile())
        copyFileSync(join(from, name), join(to, name));
    }
    this.#letGo();
    rmSync(from, { recursive: true, force: true });
    disks.set(to, this);
  }

  /** A power cut in the middle of the last transaction: part of what it wrote is there. Answers whether there was one. */
  tear(rng: Rng): boolean {
    const torn = this.#last;
    this.kill();
    if (!torn || torn.after <= torn.before) return false;
    const log = join(this.folder, `${basename(torn.file)}-wal`);
    if (!existsSync(log) || statSync(log).size < torn.after) return false;
    truncateSync(log, rng.int(torn.before, torn.after - 1));
    return true;
  }

  /** Everything is erased, as by a new installation. */
  wipe(): void {
    this.kill();
    rmSync(this.folder, { recursive: true, force: true });
    mkdirSync(this.folder, { recursive: true });
  }

  remove(): void {
    this.#letGo();
    disks.delete(this.folder);
    rmSync(this.#root, { recursive: true, force: true });
  }

  /** Throws what SQLite would throw, when there is something to throw. */
  check(): void {
    const { fault } = this.state;
    if (fault) throw new Database.SqliteError(sentences[fault], fault);
  }

  /** Throws after a transaction that is there all the same. */
  checkAnswer(): void {
    if (this.state.isUnsure)
      throw new Database.SqliteError(sentences.SQLITE_IOERR_FSYNC, 'SQLITE_IOERR_FSYNC');
  }

  /** Room is made by whoever gives up a reserve; only then a transaction fits. */
  checkRoom(file: string): void {
    if (this.state.full && existsSync(`${file}.reserve`))
      throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
  }

  #letGo(): void {
    for (const db of this.#opened) if (db.open) db.close();
    this.#opened.clear();
  }
}

const sentences = {
  SQLITE_IOERR_WRITE: 'disk I/O error',
  SQLITE_IOERR_FSYNC: 'disk I/O error',
  SQLITE_READONLY: 'attempt to write a readonly database',
} as const;

const disks = new Map<string, Disk>();

function diskOf(path: string): Disk | undefined {
  return disks.size > 0 ? disks.get(dirname(path)) : undefined;
}

function logBytes(file: string): number {
  return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

type Prototype = Pick<Database.Database, 'transaction' | 'pragma' | 'exec'>;
const prototype: Prototype = Database.prototype;
const { transaction, pragma, exec } = prototype;

function transactionOnDisk(this: Database.Database, work: (...args: unknown[]) => unknown): unknown {
  const disk = diskOf(this.name);
  if (!disk) return transaction.call(this, work);
  const run = transaction.call(this, (...args: unknown[]) => {
    disk.check();
    const value = work(...args);
    disk.checkRoom(this.name);
    return value;
  });
  const noted =
    (begin: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      const before = logBytes(this.name);
      const value = begin(...args);
      disk.wrote(this.name, before, logBytes(this.name));
      disk.checkAnswer();
      return value;
    };
  return Object.assign(noted(run), { immediate: noted((...args) => run.immediate(...args)) });
}

function pragmaOnDisk(this: Database.Database, ...args: Parameters<Database.Database['pragma']>): unknown {
  const disk = diskOf(this.name);
  if (disk && args[0].includes('journal_mode')) {
    disk.opened(this);
    disk.check();
  }
  return pragma.apply(this, args);
}

function execOnDisk(this: Database.Database, sql: string): Database.Database {
  const disk = diskOf(this.name);
  if (disk && sql === 'BEGIN IMMEDIATE') disk.check();
  const before = disk && sql === 'COMMIT' ? logBytes(this.name) : -1;
  const answer = exec.call(this, sql);
  if (disk && before >= 0) disk.wrote(this.name, before, logBytes(this.name));
  return answer;
}

Object.assign(prototype, { transaction: transactionOnDisk, pragma: pragmaOnDisk, exec: execOnDisk });

const { statfsSync } = fs;
Object.assign(fs, {
  statfsSync: (path: string) => {
    const disk = disks.get(path);
    const found = statfsSync(path);
    if (!disk) return found;
    const free_bytes = disk.state.full ? 0 : disk.state.free_bytes;
    return Object.assign(found, { bsize: 4_096, bavail: Math.floor(free_bytes / 4_096) });
  },
});
syncBuiltinESMExports();
