/** What all tests of a run share, where making it takes longer than copying or reading it. */
import { existsSync, rmSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDirectory } from '../temporary.ts';

/** Answers the directory `name`, which whoever asks first has `make` write. It is removed after the run. */
export async function madeOnce(name: string, make: (dir: string) => Promise<void>): Promise<string> {
  // Beside a run of the tests nobody removes the temporary directory.
  const isOfRun = process.env['VITEST'] !== undefined;
  const shared = join(tmpdir(), name);
  if (isOfRun && existsSync(shared)) return shared;
  const dir = await makeDirectory();
  const own = join(dir, name);
  await make(own);
  if (!isOfRun) {
    process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
    return own;
  }
  // Whoever comes second at the same time uses what the first one has put there.
  await rename(own, shared).catch(async (error: unknown) => {
    if (!existsSync(shared)) throw error;
  });
  await rm(dir, { recursive: true, force: true });
  return shared;
}
