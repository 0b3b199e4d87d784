/** Sentences on files of the configuration. Tests refer to them by their names here. */
import { systemReason } from '../errors.ts';

const readable = 'give its group to the user that runs kit-connector and make it readable (chmod 640)';
const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'create it or name another file',
  ENOTDIR: 'create it or name another file',
  EACCES: readable,
  EPERM: readable,
  EISDIR: 'name a file',
};

export const texts = {
  /** Why a file could not be read, and the remedy; the file stands before it. */
  unreadable: (error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return `cannot be read (${systemReason(error)}); ${remedies[code] ?? 'check the disk'}`;
  },
} as const;
