/** Brings what a damaged file still holds into a new one, the most important first. */
import { type Lane, lanes } from '../../../../contract/lanes.ts';
import { Changes, type Depth, no_depth, perLane } from '../changes.ts';
import { diskFault } from '../../disk-fault.ts';
import { positionOf, rowId, type RowId } from '../../row.ts';
import { epochNumber, type RowShape, rowShapes } from '../../row-shapes.ts';
import type { OpenOptions } from '../../protocol.ts';
import { type Handle, isOtherKit, laneTable, page_bytes, writeMeta } from '../schema.ts';
import type { Tables } from '../tables/tables.ts';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import Database, { type Statement } from 'better-sqlite3';
import { withFile } from '../../../../platform/files/private-file.ts';
import { readHead } from './disk.ts';
import { patchHeader } from './file-header.ts';

/** Time limit for a damaged file; what is not read by then stays in the file that was moved aside. */
const salvage_ms_max = 60_000;
/** Interval of the progress reports. */
const report_every_ms = 500;
/** One part of a lane, in one transaction: what the memory of the thread holds well. */
const part_rows = 5_000;
const part_chars = 4 * 1024 * 1024;

export interface Salvaged {
  readonly depth: Depth;
  /** The counters of the damaged file; undefined when they are lost too. */
  readonly expected: Depth | undefined;
  /** The epoch that the damaged file named; undefined when it cannot be read. */
  readonly epoch: number | undefined;
  /** The highest epoch of anything that was read. */
  readonly epoch_seen: number;
}

export const nothing_salvaged: Salvaged = {
  depth: no_depth,
  expected: undefined,
  epoch: undefined,
  epoch_seen: 0,
};

/**
 * Reads `damaged` into the tables of a new file; of another kit than `kit_id` only the epoch. `onSalvage` receives the progress:
 * at the beginning, twice a second, and at the end. Throws what SQLite throws when the new file does not take it.
 */
export function salvage(
  damaged: Handle,
  into: Tables,
  { kit_id, onSalvage: report = () => undefined }: Pick<OpenOptions, 'kit_id' | 'onSalvage'>,
  ms_max = salvage_ms_max,
): Salvaged {
  const end_ms = performance.now() + ms_max;
  const goOn = (): boolean => performance.now() < end_ms;
  const meta = mapOf(readEnds(damaged, 'meta', rowShapes.meta));
  const owner = mapOf(readEnds(damaged, 'meta', rowShapes.metaText)).get('kit_id');
  const named = meta.get('epoch');
  const epoch = epochNumber(named) ? named : undefined;
  if (isOtherKit(owner, kit_id)) return { ...nothing_salvaged, epoch, epoch_seen: epoch ?? 0 };
  const counters = new Map<Lane, { rows: number; bytes: number }>();
  for (const { lane, rows, bytes } of readEnds(damaged, 'depth', rowShapes.depth))
    counters.set(lane, { rows, bytes });
  const expected =
    counters.size === lanes.length
      ? perLane((lane) => counters.get(lane) ?? { rows: 0, bytes: 0 })
      : undefined;
  const rows_expected = expected ? rowsIn(expected) : null;
  report({ rows_saved: 0, rows_expected, done: false });
  into.db.transaction(() => {
    copyRecords(damaged, into, goOn);
    // After the drops, which count themselves.
    into.totals.restore(readEnds(damaged, 'depth', rowShapes.total), meta);
    if (meta.get('cloud_acks') === 1) writeMeta(into.db, 'cloud_acks', 1);
  })();
  let reported_ms = performance.now();
  const { depth, newest } = copyLanes(damaged, into, {
    goOn,
    saved: (depth) => {
      if (performance.now() - reported_ms < report_every_ms) return;
      reported_ms = performance.now();
      report({ rows_saved: rowsIn(depth), rows_expected, done: false });
    },
  });
  report({ rows_saved: rowsIn(depth), rows_expected, done: true });
  return {
    depth,
    expected,
    epoch,
    epoch_seen: Math.max(positionOf(newest).epoch, ...into.epochs.all()),
  };
}

function mapOf<T>(rows: readonly { readonly key: string; readonly value: T }[]): ReadonlyMap<string, T> {
  return new Map(rows.map(({ key, value }) => [key, value]));
}

/** The buffered messages, lane by lane, until they are all read or the new file is full. */
function copyLanes(
  damaged: Handle,
  into: Tables,
  { goOn, saved }: { readonly goOn: () => boolean; readonly saved: (depth: Depth) => void },
): { depth: Depth; newest: RowId } {
  const channels = readChannels(damaged, goOn);
  let depth = no_depth;
  let newest: RowId = 0;
  for (const lane of lanes) {
    const anchors = epochStarts(damaged, laneTable(lane), into);
    const stored = readPast(damaged, laneTable(lane), rowShapes.lane, { anchors, goOn });
    for (const part of inParts(stored, ({ body }) => body.length)) {
      const changes = new Changes(depth);
      const insert = into.db.transaction(() => {
        for (const { topic, ...row } of part) {
          newest = Math.max(newest, row.id);
          const channel = channels.get(topic);
          if (channel !== undefined) into.insert({ ...row, lane, channel }, changes);
        }
        into.writeDepth(changes);
      });
      if (!hasRoomFor(insert)) return { depth, newest };
      depth = changes.depth();
      saved(depth);
    }
  }
  return { depth, newest };
}

export function rowsIn(depth: Depth): number {
  return lanes.reduce((sum, lane) => sum + depth[lane].rows, 0);
}

/** The first row id of each epoch that the epochs table or the last row names. */
function epochStarts(damaged: Handle, table: string, into: Tables): readonly RowId[] {
  const last = lastKey(damaged, table, 'id');
  const epochs = new Set(into.epochs.all());
  if (last !== undefined) epochs.add(positionOf(last).epoch);
  return [...epochs].map((epoch) => rowId({ epoch, seq: 0 }));
}

/** Without its channel a row is worth nothing, and one page holds many: what the table has lost its index may have. */
function readChannels(damaged: Handle, goOn: () => boolean): ReadonlyMap<number, string> {
  const indexed = readEnds(damaged, 'topics', rowShapes.channels);
  const stored = readPast(damaged, 'topics', rowShapes.topics, { anchors: [], goOn });
  return new Map([...indexed, ...stored].map(({ id, channel }) => [id, channel]));
}

function hasRoomFor(insert: () => void): boolean {
  try {
    insert();
    return true;
  } catch (error) {
    if (diskFault(error)?.kind === 'full') return false;
    throw error;
  }
}

function copyRecords(damaged: Handle, into: Tables, goOn: () => boolean): void {
  const reading = { anchors: [], goOn };
  for (const { epoch, boot_id, clock_offset_ms } of readPast(damaged, 'epochs', rowShapes.epochs, reading))
    into.epochs.put(epoch, boot_id, clock_offset_ms);
  for (const task of readPast(damaged, 'tasks', rowShapes.tasks, reading)) into.journal.put(task);
  const anchors = epochStarts(damaged, 'quarantine', into);
  for (const kept of readPast(damaged, 'quarantine', rowShapes.quarantine, { anchors, goOn })) {
    const { code, reason, ...row } = kept;
    into.quarantine.put([{ row, code, reason }], new Changes(no_depth));
  }
  for (const drop of readEnds(damaged, 'drops', rowShapes.drops)) into.drops.add(drop);
  for (const value of readEnds(damaged, 'announced', rowShapes.announced)) into.announced.put(value);
}

function* inParts<T>(items: Iterable<T>, charsOf: (item: T) => number): Generator<readonly T[]> {
  let part: T[] = [];
  let chars = 0;
  for (const item of items) {
    part.push(item);
    chars += charsOf(item);
    if (part.length < part_rows && chars < part_chars) continue;
    yield part;
    part = [];
    chars = 0;
  }
  if (part.length > 0) yield part;
}

const labels = ['damaged', 'too-new', 'other-kit', 'replaced'] as const;
type Label = (typeof labels)[number];
/** These may come again and again. */
const erased_in_time: ReadonlySet<Label> = new Set(['damaged', 'replaced']);
const kept_max = 2;
const page_rows = 500;

/**
 * A buffer file that cannot be used any more: moves it aside, never erases it at once, and reads what is left in it.
 * Moves the file and its log aside as `<file>.<label>-<n>` and answers the new path. Damaged ones, and those found in place of our own, are erased in time.
 */
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
  withFile(`${path}-page1`, 'w', (fd) => writeSync(fd, readHead(path, page_bytes)));
  const file_bytes = statSync(path).size;
  const page = patchHeader(readHead(like, page_bytes), { file_bytes, journal: 'log' });
  withFile(path, 'r+', (fd) => writeSync(fd, page, 0, page_bytes, 0));
}

interface Reading {
  /** Keys near which rows may be found: a search that only doubles its steps jumps over what is dense and far away. */
  readonly anchors: readonly number[];
  /** Called before every page. */
  readonly goOn: () => boolean;
}

type Rows = readonly (readonly unknown[])[];

/** The valid rows of a table in the order of their key, a whole number above 0, past the pages that cannot be read. */
function* readPast<T>(
  db: Handle,
  table: string,
  { columns, of }: RowShape<T>,
  { anchors, goOn }: Reading,
): Generator<T> {
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
    for (const values of untilDamaged(select, after, page)) {
      const row = of(values);
      if (row !== undefined) yield row;
      after = Number(values[0]);
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
function lastKey(db: Handle, table: string, key: string): number | undefined {
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

/** All valid rows of a small table, from both ends, as far as they can be read. */
function readEnds<T>(db: Handle, table: string, { columns, of }: RowShape<T>): readonly T[] {
  const found = new Map<string, readonly unknown[]>();
  for (const order of ['ASC', 'DESC']) {
    unlessDamaged(() => {
      const select = db.prepare<[], readonly unknown[]>(
        `SELECT ${columns.join(', ')} FROM ${table} ORDER BY ${columns[0]} ${order}`,
      );
      for (const row of select.raw().iterate()) found.set(JSON.stringify(row), row);
    });
  }
  return [...found.values()].flatMap((values) => of(values) ?? []);
}

function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Database.SqliteError) return undefined;
    throw error;
  }
}
