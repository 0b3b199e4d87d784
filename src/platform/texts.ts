/** Sentences of the platform that people read; tests refer to them by name. */
import { systemReason } from '../errors.ts';

const readable = 'make it readable by the group of the user that runs kit-connector (chmod 640)';
const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'create it or name another file',
  ENOTDIR: 'create it or name another file',
  EACCES: readable,
  EPERM: readable,
  EISDIR: 'name a file',
};

export const texts = {
  // Files with secrets
  /** Why a file could not be read, and the remedy; the file stands before it. */
  unreadable: (error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return `cannot be read (${systemReason(error)}); ${remedies[code] ?? 'check the disk'}`;
  },
  not_a_file: (file: string) => `${file} is not a regular file; name the right file`,
  world_access: (file: string) => `every user of this machine has access to ${file}; run "chmod o= ${file}"`,
  file_too_large: (file: string, bytes_max: number) =>
    `${file} is larger than ${bytes_max} bytes; name the right file`,
  file_empty: (file: string) => `${file} is empty; write the secret into it`,
  not_utf8: (file: string) => `${file} is not UTF-8 text; write the secret as UTF-8`,
} as const;
