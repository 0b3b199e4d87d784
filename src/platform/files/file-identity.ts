/**
 * Notices that a path names another file than the one that was opened: it was deleted, replaced, or its disk was taken away. SQLite
 * looks for this in no write to its log, and what is written to an unlinked file is lost when the process ends.
 */
import { type BigIntStats, statSync } from 'node:fs';

type Look = (path: string) => Pick<BigIntStats, 'dev' | 'ino'> | undefined;

/**
 * To be called while the files are open: an inode in use is given to no other file. Returns a function that returns those of the
 * paths that name another file by now, or none.
 */
export function watchPlaces(paths: readonly string[], look: Look = lookAt): () => readonly string[] {
  const marks = new Map(paths.map((path) => [path, markOf(path, look)]));
  // A file system that gives a file another number at each look gives no evidence.
  const known = [...marks].filter(([path, mark]) => mark !== undefined && mark === markOf(path, look));
  return () => known.filter(([path, mark]) => (markOf(path, look) ?? mark) !== mark).map(([path]) => path);
}

/** Empty: there is no file. Undefined: not known. */
function markOf(path: string, look: Look): string | undefined {
  try {
    const found = look(path);
    return found ? `${found.dev}:${found.ino}` : '';
  } catch {
    // A disk that fails shows it at the next write.
    return undefined;
  }
}

function lookAt(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
