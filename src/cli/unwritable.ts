/** The error for a file that cannot be written, with its remedy. */
import { systemReason } from '../platform/errors.ts';
import { texts } from './texts.ts';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: texts.create_or_choose,
  ENOTDIR: texts.choose_another_path,
  EEXIST: texts.choose_another_file,
  EISDIR: texts.name_file_directory,
  EACCES: texts.use_sudo,
  EPERM: texts.use_sudo,
  EROFS: texts.choose_another_path,
  ENOSPC: texts.free_space,
  EDQUOT: texts.free_space,
};

/** For `catch` of what writes `path`: always throws. */
export function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(texts.unwritable(path, systemReason(error), remedies[code] ?? texts.check_disk), {
      cause: error,
    });
  };
}
