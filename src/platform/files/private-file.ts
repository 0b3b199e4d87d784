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
