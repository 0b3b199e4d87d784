/**
 * Replaces a damaged file by a new file with its readable rows, or one that was deleted or replaced in use by a new file with all
 * that its handle still reads. The new file takes its place only when it is complete, so after a power cut there is either the
 * damaged file or the finished new one.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Changes, type Depth } from '../changes.ts';
import { lanes } from '../../../contract/lanes.ts';
import { finishMove, moveAside, openDamaged } from './damaged-file.ts';
import { rowId, seq_max } from '../../row.ts';
import type { OpenOptions, Removal, Salvage } from '../../protocol.ts';
import { nothing_salvaged, rowsIn, salvage, type Salvaged } from './salvage.ts';
import type { Handle } from '../schema.ts';
import type { Tables } from '../tables/tables.ts';

export interface Replacement {
  readonly salvage: Salvage;
  readonly lost: readonly Removal[];
}

/** A file that is still open, and not where it was opened. */
export interface Displaced {
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

/** Takes up a replacement that a power cut left finished, but not yet in its place. */
export function finishReplacement(file: string): void {
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
export function lostRows(expected: Depth | undefined, depth: Depth, epoch: number): readonly Removal[] {
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
