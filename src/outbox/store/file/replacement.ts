/**
 * Replaces a damaged file by a new file with its readable rows. The new file takes its place only when it is
 * complete, so after a power cut there is either the damaged file or the finished new one.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { Changes, type Depth } from '../changes.ts';
import { lanes } from '../../../contract/lanes.ts';
import { finishMove, moveAside, openDamaged } from './damaged-file.ts';
import { rowId, seq_max } from '../../row.ts';
import type { OpenOptions, Removal, Salvage } from '../../protocol.ts';
import { nothing_salvaged, rowsIn, salvage, type Salvaged } from './salvage.ts';
import type { Tables } from '../tables/tables.ts';

export interface Replacement {
  readonly salvage: Salvage;
  readonly lost: readonly Removal[];
}

interface ReplacementOptions {
  readonly options: OpenOptions;
  readonly cause: string;
  readonly open: (file: string) => Tables;
  /** What was in the damaged file; undefined when only its counters are readable. */
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
export function replaceDamaged(options: ReplacementOptions): Replacement {
  const { cause } = options;
  const { file, boot_id } = options.options;
  for (const part of ['', '-wal', '-shm']) rmSync(newFile(file) + part, { force: true });
  const tables = options.open(newFile(file));
  try {
    const saved = fill(tables, options.options);
    const epoch = options.epochAfter(saved);
    const newest = saved.epoch ?? (saved.epoch_seen || epoch);
    const lost = lostRows(options.depth ?? saved.expected, saved.depth, newest);
    tables.db.transaction(() => {
      tables.epochs.begin(epoch, boot_id);
      tables.drops.note(lost);
    })();
    tables.db.pragma('wal_checkpoint(TRUNCATE)');
    tables.db.close();
    const moved_to = moveAside(file, 'damaged');
    renameSync(newFile(file), file);
    const known = (options.depth ?? saved.expected) !== undefined;
    return {
      lost,
      salvage: {
        kind: 'damaged',
        cause,
        moved_to,
        rows_saved: rowsIn(saved.depth),
        rows_lost: known ? rowsOf(lost) : null,
      },
    };
  } finally {
    tables.db.close();
  }
}

function newFile(file: string): string {
  return `${file}.new`;
}

function fill(tables: Tables, options: OpenOptions): Salvaged {
  const { file, kit_id, onSalvage = () => undefined } = options;
  tables.db.pragma('wal_checkpoint(TRUNCATE)');
  const damaged = openDamaged(file, tables.db.name);
  if (!damaged) return nothing_salvaged;
  try {
    return salvage(damaged, tables, kit_id, onSalvage);
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
