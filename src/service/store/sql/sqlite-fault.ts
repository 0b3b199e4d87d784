/** Sentences for faults of the SQLite file and of its disk, each with its remedy. */
import Sqlite from 'better-sqlite3';
import { messageOf, StorageUnavailable, systemReason } from '../../../errors.ts';
import { texts } from '../../texts.ts';

/** Result codes of SQLite, the first that fits: an extended one begins with its primary one. */
const sentences: readonly (readonly [code: string, sentence: string])[] = [
  ['SQLITE_FULL', texts.disk_full],
  // SQLite allocates the index of its log at each start, and reports a full disk and a failing one with the same code.
  ['SQLITE_IOERR_SHMSIZE', texts.disk_full_or_failing],
  ['SQLITE_READONLY', texts.file_read_only],
  ['SQLITE_CORRUPT', texts.file_damaged],
  ['SQLITE_NOTADB', texts.file_damaged],
  ['SQLITE_IOERR', texts.disk_failing],
  ['SQLITE_CANTOPEN', texts.file_not_accessible],
  ['SQLITE_BUSY', texts.file_locked],
];

/** Why the file cannot be used, and what to do about it. */
export function reasonOf(error: unknown): string {
  if (error instanceof Sqlite.SqliteError) {
    const { code, message } = error;
    const [, sentence = message] = sentences.find(([known]) => code.startsWith(known)) ?? [];
    return `${sentence} (${code}: ${message})`;
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') return texts.disk_full;
  return code === '' ? messageOf(error) : `${systemReason(error)}; ${texts.check_directory}`;
}

/** Errors of SQLite may end by themselves, or when someone makes room; others are faults of the program. */
export function unavailable(error: unknown): Error {
  if (error instanceof Sqlite.SqliteError) return new StorageUnavailable(reasonOf(error));
  return error instanceof Error ? error : new StorageUnavailable(messageOf(error));
}
