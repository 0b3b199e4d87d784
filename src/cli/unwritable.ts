/** The error for a file that cannot be written, with its remedy. */
import { systemReason } from '../errors.ts';
import { texts } from './terminal/texts.ts';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'create its directory, or choose another path',
  ENOTDIR: 'choose another path',
  EEXIST: 'choose another file',
  EISDIR: 'name a file in this directory',
  EACCES: 'use sudo, or choose another path',
  EPERM: 'use sudo, or choose another path',
  EROFS: 'choose another path',
  ENOSPC: 'free some space',
};

/** For `catch` of what writes `path`: always throws. */
export function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(texts.unwritable(path, systemReason(error), remedies[code] ?? 'check the disk'), {
      cause: error,
    });
  };
}
