/** Says why a file that a subcommand makes cannot be written, and the remedy. */
import { messageOf } from '../errors.ts';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist; make it, or name another place',
  ENOTDIR: 'its folder is a file; name another place',
  EEXIST: 'it is there already; name another file',
  EISDIR: 'it is a folder; name a file in it',
  EACCES: 'this user may not write there; use sudo, or name another place',
  EPERM: 'this user may not write there; use sudo, or name another place',
  EROFS: 'the disk is read-only; name another place',
  ENOSPC: 'the disk is full; free some space',
};

/** For `catch` of what writes `path`: always throws. */
export function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(`${path} cannot be written: ${remedies[code] ?? messageOf(error)}`, { cause: error });
  };
}
