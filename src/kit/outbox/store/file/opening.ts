/** Opens the buffer file of this kit. A file that this release cannot read, or of another kit, is moved aside and replaced by a new one. */
import {
  finishMove,
  moveAside,
  nothing_salvaged,
  openDamaged,
  rowsIn,
  salvage,
  type Salvaged,
} from './salvage.ts';
import {
  dropOf,
  type Found,
  type OpenOptions,
  type Removal,
  type Salvage,
  type StoreOptions,
} from '../../protocol.ts';
import {
  FileTooNew,
  type Handle,
  isOtherKit,
  openFile,
  readMeta,
  readMetaText,
  writeMeta,
} from '../schema.ts';
import type { Tables } from '../tables/tables.ts';
import { texts } from '../../texts.ts';
import { Changes, type Depth, no_depth } from '../changes.ts';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { lanes } from '../../../../contract/lanes.ts';
import { rowId, seq_max } from '../../row.ts';
import { diskFault, unlessRefused } from '../../disk-fault.ts';
import { noteUnwritten } from '../../unwritten.ts';

interface OpenFile {
  readonly db: Handle;
  /** What happened to the file that was there. */
  readonly salvage?: Salvage;
}

/** `epochOfTooNew`: the last epoch of a file that this release cannot read. Throws the errors of SQLite. */
export function openOwn(options: StoreOptions, epochOfTooNew: () => number): OpenFile {
  const { file, limits } = options;
  finishReplacement(file);
  try {
    const db = openFile(file, limits.bytes_max);
    const owner = readMetaText(db, 'kit_id');
    return isOtherKit(owner, options.kit_id) ? replaceOther(db, owner, options) : { db };
  } catch (error) {
    if (!(error instanceof FileTooNew)) throw error;
    const epoch = epochOfTooNew();
    const moved_to = moveAside(file, 'too-new');
    return {
      db: begunAfter(epoch, options),
      salvage: { kind: 'too_new', cause: error.message, moved_to, rows_saved: 0, rows_lost: null },
    };
  }
}

/** The messages of another kit must never leave under our name. */
function replaceOther(db: Handle, owner: string, options: StoreOptions): OpenFile {
  const epoch = readMeta(db, 'epoch') ?? 0;
  db.close();
  const moved_to = moveAside(options.file, 'other-kit');
  const cause = texts.other_kit(owner);
  return {
    db: begunAfter(epoch, options),
    salvage: { kind: 'other_kit', cause, moved_to, rows_saved: 0, rows_lost: null },
  };
}

/** A new file whose epochs continue after `epoch`. */
function begunAfter(epoch: number, { file, limits }: StoreOptions): Handle {
  const db = openFile(file, limits.bytes_max);
  try {
    writeMeta(db, 'epoch', epoch);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** What an earlier run left, beside its messages. */
export function foundIn({ db, drops, journal, announced, totals }: Tables): Found {
  return {
    drops: drops.list(),
    open_tasks: journal.open(),
    announced: announced.list(),
    cloud_acks: readMeta(db, 'cloud_acks') === 1,
    left: totals.read(),
    ended_tasks: journal.ended(),
  };
}

interface OfRun {
  readonly file: string;
  /** Those that this process has begun, the newest last. */
  readonly epochs: readonly number[];
  /** What the file held. */
  readonly depth: Depth;
}

/**
 * Opens the buffer file again in a process that has used it: what it held is lost when another file, or none, is in its place.
 */
export function reopen(
  open: () => Tables,
  { file, epochs, depth }: OfRun,
): { readonly tables: Tables; readonly replacement?: Replacement } {
  const found = open();
  if (epochs.some((epoch) => found.epochs.knows(epoch))) return { tables: found };
  const isNew = found.epochs.last() === undefined;
  if (!isNew) found.db.close();
  const moved_to = isNew ? null : moveAside(file, 'replaced');
  const lost = lostRows(depth, no_depth, epochs.at(-1) ?? 0);
  return {
    tables: isNew ? found : open(),
    replacement: {
      lost,
      salvage: {
        kind: 'replaced',
        cause: texts.file_gone,
        moved_to,
        rows_saved: 0,
        rows_lost: rowsIn(depth),
      },
    },
  };
}

export interface Replacement {
  readonly salvage: Salvage;
  readonly lost: readonly Removal[];
}

/** A file that is still open, and not where it was opened. */
interface Displaced {
  readonly db: Handle;
  /** Ends the handle, and removes what is left of its log. */
  readonly letGo: () => void;
}

interface ReplacementOptions {
  readonly options: OpenOptions;
  readonly cause: string;
  /** Left out: the file is where it was opened, and is damaged. */
  readonly displaced?: Displaced;
  readonly open: (file: string) => Tables;
  /** What was in the file; undefined when only its counters are readable. */
  readonly depth: Depth | undefined;
  /** The epoch to continue with, by what was found. */
  readonly epochAfter: (saved: Salvaged) => number;
}

/**
 * Replaces a damaged file by a new file with its readable rows, or one that was deleted or replaced in use by a new file with all
 * that its handle still reads. The new file takes its place only when it is complete, so after a power cut there is either the
 * damaged file or the finished new one.
 * Takes up a replacement that a power cut left finished, but not yet in its place.
 */
function finishReplacement(file: string): void {
  finishMove(file);
  if (!existsSync(file) && existsSync(newFile(file))) renameSync(newFile(file), file);
}

/** Throws what SQLite and the file system throw. */
export function replaceFile(options: ReplacementOptions): Replacement {
  const { cause, displaced } = options;
  const { file } = options.options;
  const { saved, lost } = makeNew(options);
  displaced?.letGo();
  const place = displaced
    ? { kind: 'replaced' as const, moved_to: existsSync(file) ? moveAside(file, 'replaced') : null }
    : { kind: 'damaged' as const, moved_to: moveAside(file, 'damaged') };
  finishReplacement(file);
  const known = (options.depth ?? saved.expected) !== undefined;
  return {
    lost,
    salvage: { ...place, cause, rows_saved: rowsIn(saved.depth), rows_lost: known ? rowsOf(lost) : null },
  };
}

/** The finished new file beside the old one, or none. */
function makeNew(options: ReplacementOptions): { saved: Salvaged; lost: readonly Removal[] } {
  const { displaced, depth } = options;
  const { file, boot_id } = options.options;
  if (displaced) mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  removeNew(file);
  const tables = options.open(newFile(file));
  try {
    // A log beside it would take the room of as many rows, and a disk may be full.
    tables.db.pragma('journal_mode = MEMORY');
    // Without a limit of time: what is not read now is lost with the handle.
    const saved = displaced
      ? salvage(displaced.db, tables, options.options, Number.POSITIVE_INFINITY)
      : fill(tables, options.options);
    const epoch = options.epochAfter(saved);
    const newest = saved.epoch ?? (saved.epoch_seen || epoch);
    const lost = lostRows(depth ?? saved.expected, saved.depth, newest);
    tables.db.transaction(() => {
      tables.epochs.begin(epoch, boot_id);
      tables.drops.note(lost);
    })();
    tables.db.close();
    return { saved, lost };
  } catch (error) {
    tables.db.close();
    removeNew(file);
    throw error;
  }
}

function removeNew(file: string): void {
  for (const part of ['', '-wal', '-shm']) rmSync(newFile(file) + part, { force: true });
}

function newFile(file: string): string {
  return `${file}.new`;
}

function fill(tables: Tables, options: OpenOptions): Salvaged {
  const damaged = openDamaged(options.file, tables.db.name);
  if (!damaged) return nothing_salvaged;
  try {
    return salvage(damaged, tables, options);
  } finally {
    damaged.close();
  }
}

/** The missing numbers are unknown: they are reported as numbers of the newest epoch. */
function lostRows(expected: Depth | undefined, depth: Depth, epoch: number): readonly Removal[] {
  if (!expected) return [];
  const changes = new Changes(depth);
  for (const lane of lanes) {
    changes.gaveUp(lane, 'unreadable', {
      rows: Math.max(0, expected[lane].rows - depth[lane].rows),
      bytes: Math.max(0, expected[lane].bytes - depth[lane].bytes),
      lo: rowId({ epoch, seq: 0 }),
      hi: rowId({ epoch, seq: seq_max - 1 }),
    });
  }
  return changes.removals();
}

function rowsOf(removals: readonly Removal[]): number {
  return removals.reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * The end of a run with its buffer file, or without it.
 * Writes the log back and ends the handle.
 */
export function closeTables({ db, ages }: Tables): void {
  try {
    db.transaction(() => ages.save())();
    db.pragma('optimize');
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    // Everything is in the file or its log by now: a disk that fails at the very end costs nothing.
    if (!diskFault(error)) throw error;
  } finally {
    db.close();
  }
}

/** Ends a handle whose disk may fail. */
export function endHandle(db: Handle): void {
  unlessRefused(() => db.close(), undefined);
}

/** Notes what a file holds that is out of reach: the next start reports it as lost, unless it finds that file. */
export function noteStored({ runtime_dir, kit_id }: StoreOptions, epoch: number, depth: Depth): void {
  const stored = lostRows(depth, no_depth, epoch).map((removal) => dropOf(removal, 'unreadable'));
  if (stored.length > 0) noteUnwritten(runtime_dir, { epoch, kit_id, rows: [], drops: [], stored });
}
