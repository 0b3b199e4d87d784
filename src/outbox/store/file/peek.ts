/** Reads the epoch of a file that SQLite cannot open: one on a read-only disk, or of a later version. */
import { closeSync, openSync, readSync } from 'node:fs';
import Database from 'better-sqlite3';
import { diskFault } from './disk-fault.ts';
import { page_bytes, patchHeader } from './file-header.ts';
import { readMeta } from '../schema.ts';

/** The roots of all tables stand at the beginning of the file, and `meta` fits its root. */
const head_bytes = 64 * page_bytes;

/** 0 when it cannot be read. What stands in the log only is not seen, so the true epoch may be a little higher. */
export function peekEpoch(file: string): number {
  try {
    const db = new Database(patchHeader(readHead(file), { journal: 'rollback' }));
    try {
      return readMeta(db, 'epoch') ?? 0;
    } finally {
      db.close();
    }
  } catch (error) {
    if (error instanceof Database.SqliteError || diskFault(error)) return 0;
    throw error;
  }
}

function readHead(file: string): Buffer {
  const head = Buffer.alloc(head_bytes);
  const fd = openSync(file, 'r');
  try {
    return head.subarray(0, readSync(fd, head, 0, head_bytes, 0));
  } finally {
    closeSync(fd);
  }
}
