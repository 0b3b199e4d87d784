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
import Database from 'better-sqlite3';
import { diskFault } from './disk-fault.ts';
import type { Handle } from './schema.ts';

const kept_max = 2;
const page_bytes = 4096;
const page_rows = 500;

/** Moves the file and its log aside as `<file>.<label>-<n>` and answers the new path. */
export function moveAside(file: string, label: 'damaged' | 'too-new'): string {
  const earlier = asideNumbers(file, label);
  const to = `${file}.${label}-${(earlier.at(-1) ?? 0) + 1}`;
  renameSync(file, to);
  for (const part of ['-wal', '-page1']) if (existsSync(file + part)) renameSync(file + part, to + part);
  rmSync(`${file}-shm`, { force: true });
  if (label === 'damaged')
    for (const n of earlier.slice(0, -(kept_max - 1))) eraseAside(`${file}.${label}-${n}`);
  return to;
}

function asideNumbers(file: string, label: string): readonly number[] {
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
    db.prepare('SELECT count(*) FROM lane_task').get();
    return db;
  } catch (error) {
    db?.close();
    if (diskFault(error) || error instanceof Database.SqliteError) return undefined;
    throw error;
  }
}

function replaceFirstPage(path: string, like: string): void {
  copyFirstPage(path, `${path}-page1`);
  const page = readFirstPage(like);
  page.writeUInt32BE(Math.floor(statSync(path).size / page_bytes), page_count_at);
  // No page is free, as far as a reader has to know.
  page.fill(0, freelist_at, freelist_at + 8);
  page.copy(page, version_valid_for_at, change_counter_at, change_counter_at + 4);
  const fd = openSync(path, 'r+');
  writeSync(fd, page, 0, page_bytes, 0);
  closeSync(fd);
}
/** Offsets in the header of a database file, https://www.sqlite.org/fileformat.html section 1.3. */
const change_counter_at = 24;
const page_count_at = 28;
const freelist_at = 32;
const version_valid_for_at = 92;

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

/**
 * The rows of a table, in the order of its whole-number key, past the pages that cannot be read. `key` is the first
 * column. Stops when `more` says so.
 */
export function* readPast(
  db: Handle,
  table: string,
  columns: readonly string[],
  more: () => boolean,
): Generator<readonly unknown[]> {
  const [key] = columns;
  const select = db
    .prepare<[number, number], readonly unknown[]>(
      `SELECT ${columns.join(', ')} FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ?`,
    )
    .raw();
  const read = (after: number, rows: number): readonly (readonly unknown[])[] | undefined =>
    unlessDamaged(() => select.all(after, rows));
  let after = 0;
  while (more()) {
    const rows = read(after, page_rows) ?? read(after, 1);
    if (rows?.length === 0) return;
    const last = rows?.at(-1)?.[0];
    // In a damaged tree a search may end anywhere.
    if (rows && typeof last === 'number' && last > after) {
      yield* rows;
      after = last;
    } else {
      const next = nextReadable(after, (id) => progresses(read(id, 1), id));
      if (next === undefined) return;
      after = next;
    }
  }
}

function progresses(rows: readonly (readonly unknown[])[] | undefined, after: number): boolean {
  const id = rows?.[0]?.[0];
  return typeof id === 'number' && id > after;
}

/** The first number after `from` behind which rows can be read again: steps double until one can, then halve. */
function nextReadable(from: number, isReadable: (after: number) => boolean): number | undefined {
  let step = 1;
  while (!isReadable(from + step)) {
    step *= 2;
    if (from + step > Number.MAX_SAFE_INTEGER) return undefined;
  }
  let [bad, good] = [from + Math.floor(step / 2), from + step];
  while (good - bad > 1) {
    const middle = Math.floor((bad + good) / 2);
    if (isReadable(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

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
