/** Reads what SQLite and the file system complain about: what it means for the buffer, and a sentence for the technician. */
import { getSystemErrorName } from 'node:util';
import Database from 'better-sqlite3';
import { messageOf } from '../errors.ts';

/**
 * `full`: making room may help. `damaged`: what the file holds is wrong. `failing`: the disk or the file cannot be used
 * now; a new handle may help later. `busy`: somebody else has locked the file.
 */
export interface DiskFault {
  readonly kind: 'full' | 'damaged' | 'failing' | 'busy';
  readonly sentence: string;
}

/** Primary result codes of SQLite; the extended ones begin with them. */
const kinds: readonly (readonly [code: string, kind: DiskFault['kind'], sentence: string])[] = [
  ['SQLITE_FULL', 'full', 'the disk is full'],
  ['SQLITE_CORRUPT', 'damaged', 'the buffer file is damaged'],
  ['SQLITE_NOTADB', 'damaged', 'the buffer file is not a database'],
  ['SQLITE_IOERR', 'failing', 'the disk fails'],
  ['SQLITE_READONLY', 'failing', 'the disk is read-only'],
  ['SQLITE_CANTOPEN', 'failing', 'the buffer file cannot be opened'],
  ['SQLITE_PROTOCOL', 'failing', 'the buffer file cannot be locked'],
  ['SQLITE_BUSY', 'busy', 'another program has locked the buffer file'],
];

/** Undefined for an error that is not the disk's. */
export function diskFault(error: unknown): DiskFault | undefined {
  if (error instanceof Database.SqliteError) {
    const found = kinds.find(([code]) => error.code.startsWith(code));
    return found && { kind: found[1], sentence: `${found[2]} (${error.code}: ${error.message})` };
  }
  const name = systemError(error);
  if (name === undefined) return undefined;
  return { kind: name === 'ENOSPC' ? 'full' : 'failing', sentence: `the disk fails (${messageOf(error)})` };
}

/** The name of a file system's complaint, for example ENOSPC. */
function systemError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errno' in error) || typeof error.errno !== 'number') return undefined;
  return getSystemErrorName(error.errno);
}
