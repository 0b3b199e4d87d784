/** A copy of a SQLite file that a service may be writing to. */
import { fsyncSync, renameSync, rmSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { keepPrivate, withFile } from '../../platform/files/private-file.ts';

/** More than a database has: in one step, since each write of another process begins the copy again (sqlite.org/backup.html). */
const all_pages = 0x7fff_ffff;

/** Resolves when the copy is complete, sound and on the disk; otherwise nothing is left at `to`, which it replaces. */
export async function copyDatabase(file: string, to: string): Promise<void> {
  const partial = `${to}.partial`;
  rmSync(partial, { force: true });
  keepPrivate(partial);
  try {
    const source = new Sqlite(file, { readonly: true, fileMustExist: true });
    try {
      await source.backup(partial, { progress: () => all_pages });
    } finally {
      source.close();
    }
    checkCopy(partial);
    withFile(partial, 'r', fsyncSync);
    renameSync(partial, to);
  } finally {
    for (const part of ['', '-journal', '-wal', '-shm']) rmSync(partial + part, { force: true });
  }
}

/** Also makes it a single file, whatever copies it. */
function checkCopy(copy: string): void {
  const db = new Sqlite(copy);
  try {
    db.pragma('journal_mode = DELETE');
    const answer = db.pragma('quick_check', { simple: true });
    if (answer !== 'ok') throw new Error(String(answer));
  } finally {
    db.close();
  }
}
