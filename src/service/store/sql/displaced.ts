/**
 * A database file that was deleted or replaced while it is in use. SQLite does not notice it, and what is acknowledged from then on
 * would end with the process: what the open handle still reads is copied into a new file, which takes the place.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { StorageUnavailable } from '../../../errors.ts';
import { keepPrivate } from '../../../platform/files/private-file.ts';
import { texts } from '../../texts.ts';

/** Pages for each turn of the event loop: on a gateway, it serves the vehicles, too. */
const pages_at_once = 500;

/** For the log. */
interface Rescued {
  readonly file: string;
  /** Where the file is now that was found in its place. */
  readonly moved_to?: string;
}

/** Copies the database `home` of the connection. Resolves with the path of the copy, which lies beside the file. */
export async function copyDisplaced(
  connection: Sqlite.Database,
  home: string,
  file: string,
): Promise<string> {
  const copy = `${file}.rescued`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  for (const part of ['', '-journal', '-wal', '-shm']) rmSync(copy + part, { force: true });
  const { bavail, bsize } = statfsSync(dirname(file));
  const pages = Number(connection.pragma(`${home}.page_count`, { simple: true }));
  const bytes = pages * Number(connection.pragma(`${home}.page_size`, { simple: true }));
  if (bavail * bsize < bytes) throw new StorageUnavailable(texts.disk_full);
  keepPrivate(copy);
  const how = { attached: home, progress: () => pages_at_once };
  await connection.backup(copy, how);
  return copy;
}

/** Puts the copy in the place of the file. `ownsLog`: the log at this place is that of the displaced file. */
export function takePlace(copy: string, file: string, ownsLog: boolean): Rescued {
  if (ownsLog || !existsSync(file)) rmSync(`${file}-wal`, { force: true });
  rmSync(`${file}-shm`, { force: true });
  const moved_to = `${file}.replaced`;
  const isTaken = existsSync(file);
  for (const part of isTaken ? ['', '-wal'] : []) {
    rmSync(moved_to + part, { recursive: true, force: true });
    if (existsSync(file + part)) renameSync(file + part, moved_to + part);
  }
  renameSync(copy, file);
  return { file, ...(isTaken && { moved_to }) };
}
