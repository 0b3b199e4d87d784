/** The end of a run with its buffer file, or without it. */
import { no_depth, type Depth } from '../changes.ts';
import { diskFault } from './disk-fault.ts';
import type { StoreOptions } from '../../protocol.ts';
import { lostRows } from './replacement.ts';
import { positionOf } from '../../row.ts';
import type { Handle } from '../schema.ts';
import type { Tables } from '../tables/tables.ts';
import { noteUnwritten } from '../../unwritten.ts';

/** Writes the log back and ends the handle. */
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
  try {
    db.close();
  } catch (error) {
    if (!diskFault(error)) throw error;
  }
}

/** Notes what a file holds that is out of reach: the next start reports it as lost, unless it finds that file. */
export function noteStored({ runtime_dir, kit_id }: StoreOptions, epoch: number, depth: Depth): void {
  const stored = lostRows(depth, no_depth, epoch).map(({ lane, rows, lo, hi }) => {
    return {
      epoch,
      lane,
      reason: 'unreadable',
      rows,
      lo: positionOf(lo).seq,
      hi: positionOf(hi).seq,
    } as const;
  });
  if (stored.length > 0) noteUnwritten(runtime_dir, { epoch, kit_id, rows: [], drops: [], stored });
}
