/** Maps errors of SQLite and the file system to their meaning for the buffer and a sentence for the technician. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { getuid } from 'node:process';
import { getSystemErrorName } from 'node:util';
import Database from 'better-sqlite3';
import { FileRefused, messageOf, type StorageFault } from '../../platform/errors.ts';
import { type DiskHealth, failing } from './protocol.ts';
import { texts } from './texts.ts';

/**
 * `full`: making room may help. `damaged`: what the file holds is wrong. `read_only` and `failing`: the disk or the file
 * cannot be used now; a new handle may help later. `busy`: another program has locked the file.
 */
export interface DiskFault {
  readonly kind: StorageFault | 'damaged' | 'failing';
  readonly sentence: string;
}

/** Result codes of SQLite, the first that fits: an extended one begins with its primary one. */
const kinds: readonly (readonly [code: string, kind: DiskFault['kind'], sentence: string])[] = [
  ['SQLITE_FULL', 'full', texts.sqlite_full],
  // SQLite allocates the index of its log at each start, and reports a full disk and a failing one with the same code.
  ['SQLITE_IOERR_SHMSIZE', 'full', texts.sqlite_no_room],
  ['SQLITE_CORRUPT', 'damaged', texts.sqlite_corrupt],
  ['SQLITE_NOTADB', 'damaged', texts.sqlite_not_a_database],
  ['SQLITE_IOERR', 'failing', texts.sqlite_io_error],
  ['SQLITE_READONLY', 'read_only', texts.sqlite_read_only],
  ['SQLITE_CANTOPEN', 'failing', texts.sqlite_cannot_open],
  ['SQLITE_PROTOCOL', 'failing', texts.sqlite_cannot_lock],
  ['SQLITE_BUSY', 'busy', texts.sqlite_busy],
];

/** Undefined for an error that is not the disk's. */
export function diskFault(error: unknown): DiskFault | undefined {
  if (error instanceof Database.SqliteError) {
    const found = kinds.find(([code]) => error.code.startsWith(code));
    return found && { kind: found[1], sentence: `${found[2]} (${error.code}: ${error.message})` };
  }
  const name = systemError(error);
  if (name === undefined) return undefined;
  return { kind: system_kinds[name] ?? 'failing', sentence: texts.system_error(messageOf(error)) };
}

/** What `work` gives, or `otherwise` where the disk or the file refuses it. */
export function unlessRefused<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof FileRefused) && !diskFault(error)) throw error;
    return otherwise;
  }
}

const system_kinds: Readonly<Record<string, DiskFault['kind']>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'read_only',
};

/** What is wrong with the file, for the technician. */
export function troubleOf({ kind, sentence }: DiskFault, file: string): DiskHealth {
  const dir = dirname(file);
  const remedy = isRefused(dir) ? refusalOf(dir, getuid?.() ?? 0, statOf(dir)) : '';
  return failing(
    `${sentence}: ${file}${remedy}`,
    kind === 'damaged' || kind === 'failing' ? undefined : kind,
  );
}

/** A folder that belongs to this user and is refused all the same: not chown, but the policy of the machine helps. */
export function refusalOf(dir: string, uid: number, stat: Pick<Stats, 'uid' | 'mode'> | undefined): string {
  const isOwn = stat?.uid === uid && (stat.mode & owner_write_search) === owner_write_search;
  return isOwn ? texts.forbidden_by_policy(dir) : texts.not_the_owner(dir, uid);
}
const owner_write_search = 0o300;

/** Undefined where a folder above it is refused. */
function statOf(dir: string): Stats | undefined {
  try {
    return statSync(dir);
  } catch {
    return undefined;
  }
}

/** As a volume of a container is that was made by another user: SQLite says only that it cannot open the file. */
function isRefused(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK | constants.X_OK);
    return false;
  } catch (error) {
    return systemError(error) === 'EACCES';
  }
}

/** The name of a system error, for example ENOSPC. */
function systemError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errno' in error) || typeof error.errno !== 'number') return undefined;
  return getSystemErrorName(error.errno);
}
