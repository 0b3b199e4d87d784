/** Files that hold what other users of the machine must not read. */
import { chmodSync, closeSync, openSync } from 'node:fs';

const owner_only = 0o600;

/** Makes the file, if it is missing, and lets only its owner access it. SQLite gives the files beside its own the same mode. Never throws. */
export function keepPrivate(file: string): void {
  if (file === ':memory:') return;
  try {
    closeSync(openSync(file, 'a', owner_only));
    chmodSync(file, owner_only);
  } catch {
    // Who opens it reports what is wrong with it; the mode of another user's file, which this one may write, is theirs.
  }
}

/** Opens a file for the time of `use`; one that it makes is its owner's alone. */
export function withFile<T>(path: string, flags: 'r' | 'r+' | 'w', use: (fd: number) => T): T {
  const fd = openSync(path, flags, owner_only);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
