/** A buffer file that cannot be used any more: moves it aside, never erases it at once, and reads what is left in it. */
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import Database, { type Statement } from 'better-sqlite3';
import { diskFault } from './disk-fault.ts';
import { page_bytes, patchHeader } from './file-header.ts';
import type { Handle } from '../schema.ts';

const labels = ['damaged', 'too-new', 'other-kit', 'replaced'] as const;
type Label = (typeof labels)[number];
/** These may come again and again. */
const erased_in_time: ReadonlySet<Label> = new Set(['damaged', 'replaced']);
const kept_max = 2;
const page_rows = 500;

/** Moves the file and its log aside as `<file>.<label>-<n>` and answers the new path. Damaged ones, and those found in place of our own, are erased in time. */
export function moveAside(file: string, label: Label): string {
  const earlier = asideNumbers(file, label);
  const to = `${file}.${label}-${(earlier.at(-1) ?? 0) + 1}`;
  renameSync(file, to);
  for (const part of ['-wal', '-page1']) if (existsSync(file + part)) renameSync(file + part, to + part);
  rmSync(`${file}-shm`, { force: true });
  if (erased_in_time.has(label))
    for (const n of earlier.slice(0, -(kept_max - 1))) eraseAside(`${file}.${label}-${n}`);
  return to;
}

/**
 * Completes a move that a crash interrupted: SQLite would replay the log of the file that was moved aside onto whatever
 * file comes next. To be called before a file is opened or takes the place of another.
 */
export function finishMove(file: string): void {
  if (existsSync(file)) return;
  rmSync(`${file}-shm`, { force: true });
  for (const part of ['-wal', '-page1']) {
    if (!existsSync(file + part)) continue;
    const aside = newestAside(file);
    if (aside === undefined || existsSync(aside + part)) rmSync(file + part);
    else renameSync(file + part, aside + part);
  }
}

/** The file that was moved aside last. */
function newestAside(file: string): string | undefined {
  const paths = labels.flatMap((label) => asideNumbers(file, label).map((n) => `${file}.${label}-${n}`));
  // The change time is that of the rename.
  const [newest] = paths.map((path) => [path, statSync(path).ctimeMs] as const).sort(([, a], [, b]) => b - a);
  return newest?.[0];
}

function asideNumbers(file: string, label: Label): readonly number[] {
  const prefix = `${basename(file)}.${label}-`;
  const numbers = readdirSync(dirname(file))
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)));
  return numbers.filter((n) => Number.isInteger(n)).sort((a, b) => a - b);
}

function eraseAside(path: string): void {
  for (const part of ['', '-wal', '-shm', '-page1']) rmSync(path + part, { force: true });
}

/**
 * Opens a damaged file for reading. When its first page is not readable, the first page of the new file `like` takes
 * its place: both have the same tables, made in the same order, so they stand at the same pages. The old first page is
 * kept beside it. Undefined when nothing can be read.
 */
export function openDamaged(path: string, like: string): Handle | undefined {
  const db = tryOpen(path);
  if (db) return db;
  if (statSync(path).size < 2 * page_bytes) return undefined;
  replaceFirstPage(path, like);
  return tryOpen(path);
}

function tryOpen(path: string): Handle | undefined {
  let db: Handle | undefined;
  try {
    db = new Database(path, { readonly: true, fileMustExist: true });
    // Only the schema has to be readable here: each table is tried separately.
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return db;
  } catch (error) {
    db?.close();
    if (diskFault(error) || error instanceof Database.SqliteError) return undefined;
    throw error;
  }
}

function replaceFirstPage(path: string, like: string): void {
  copyFirstPage(path, `${path}-page1`);
  const page = patchHeader(readFirstPage(like), { file_bytes: statSync(path).size, journal: 'log' });
  const fd = openSync(path, 'r+');
  writeSync(fd, page, 0, page_bytes, 0);
  closeSync(fd);
}

function copyFirstPage(from: string, to: string): void {
  const fd = openSync(to, 'w', 0o600);
  writeSync(fd, readFirstPage(from));
  closeSync(fd);
}

function readFirstPage(path: string): Buffer {
  const page = Buffer.alloc(page_bytes);
  const fd = openSync(path, 'r');
  readSync(fd, page, 0, page_bytes, 0);
  closeSync(fd);
  return page;
}

interface Reading {
  /** The first is the key, a whole number above 0. */
  readonly columns: readonly string[];
  /** Keys near which rows may be found: a search that only doubles its steps jumps over what is dense and far away. */
  readonly anchors: readonly number[];
  /** Called before every page. */
  readonly goOn: () => boolean;
}

type Rows = readonly (readonly unknown[])[];

/** The rows of a table in the order of their key, past the pages that cannot be read. */
export function* readPast(
  db: Handle,
  table: string,
  { columns, anchors, goOn }: Reading,
): Generator<readonly unknown[]> {
  const [key] = columns;
  const select = unlessDamaged(() =>
    db
      .prepare<[number, number], readonly unknown[]>(
        `SELECT ${columns.join(', ')} FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ?`,
      )
      .raw(),
  );
  // A file that was cut off has lost the table itself.
  if (!select) return;
  const isReadable = (after: number): boolean =>
    progresses(
      unlessDamaged(() => select.all(after, 1)),
      after,
    );
  let after = 0;
  while (goOn()) {
    const page = { rows: 0, is_damaged: false };
    for (const row of untilDamaged(select, after, page)) {
      yield row;
      after = Number(row[0]);
    }
    if (page.is_damaged && page.rows === 0) {
      const next = nextReadable(after, anchors, isReadable);
      if (next === undefined) return;
      after = next;
    } else if (page.rows === 0) {
      return;
    }
  }
}

/** One row at a time: a page of large ones would not fit the memory of the thread. */
function* untilDamaged(
  select: Statement<[number, number], readonly unknown[]>,
  after: number,
  page: { rows: number; is_damaged: boolean },
): Generator<readonly unknown[]> {
  let last = after;
  try {
    for (const row of select.iterate(after, page_rows)) {
      const [id] = row;
      // In a damaged tree a search may end anywhere.
      if (typeof id !== 'number' || id <= last) {
        page.is_damaged = true;
        return;
      }
      last = id;
      page.rows += 1;
      yield row;
    }
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    page.is_damaged = true;
  }
}

/** The highest key, read from the other end of the table; undefined when that end is damaged or nothing is there. */
export function lastKey(db: Handle, table: string, key: string): number | undefined {
  const last = unlessDamaged(() => db.prepare<[], unknown>(`SELECT max(${key}) FROM ${table}`).pluck().get());
  return typeof last === 'number' ? last : undefined;
}

function progresses(rows: Rows | undefined, after: number): boolean {
  const id = rows?.[0]?.[0];
  return typeof id === 'number' && id > after;
}

/** The probable first key after `from` from which rows can be read again. */
function nextReadable(
  from: number,
  anchors: readonly number[],
  isReadable: (after: number) => boolean,
): number | undefined {
  const starts = [from, ...anchors.filter((anchor) => anchor > from).sort((a, b) => a - b)];
  for (const start of starts) {
    const found = searchFrom(start, isReadable);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Steps double until rows can be read, then halve. */
function searchFrom(start: number, isReadable: (after: number) => boolean): number | undefined {
  let step = 1;
  while (!isReadable(start + step)) {
    step *= 2;
    if (step > search_step_max) return undefined;
  }
  let [bad, good] = [start + Math.floor(step / 2), start + step];
  while (good - bad > 1) {
    const middle = Math.floor((bad + good) / 2);
    if (isReadable(middle)) good = middle;
    else bad = middle;
  }
  return good;
}
/** The sequence numbers of a few epochs. */
const search_step_max = 2 ** 36;

/** All rows of a small table, from both ends, as far as they can be read. */
export function readEnds(
  db: Handle,
  table: string,
  columns: readonly string[],
): readonly (readonly unknown[])[] {
  const found = new Map<unknown, readonly unknown[]>();
  for (const order of ['ASC', 'DESC']) {
    unlessDamaged(() => {
      const select = db.prepare<[], readonly unknown[]>(
        `SELECT ${columns.join(', ')} FROM ${table} ORDER BY ${columns[0]} ${order}`,
      );
      for (const row of select.raw().iterate()) found.set(JSON.stringify(row), row);
    });
  }
  return [...found.values()];
}

function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Database.SqliteError) return undefined;
    throw error;
  }
}
