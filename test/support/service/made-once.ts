/** What all tests of a run share, where making it takes longer than copying or reading it. */
import { existsSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { makeDirectory } from '../temporary.ts';

/** Answers the directory `name`, which whoever asks first has `make` write. It is removed after the run. */
export async function madeOnce(name: string, make: (dir: string) => Promise<void>): Promise<string> {
  // Beside a run of the tests nobody removes the temporary directory.
  const isOfRun = process.env['VITEST'] !== undefined;
  const shared = join(tmpdir(), name);
  if (!isOfRun) {
    const dir = await makeDirectory();
    process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
    await make(join(dir, name));
    return join(dir, name);
  }
  if (existsSync(shared)) return shared;
  // Files that begin at the same time would all make it: they take turns, and the later ones find it done.
  const making = `${shared}.making`;
  const begins = async (): Promise<boolean> =>
    mkdir(making).then(
      () => true,
      () => false,
    );
  await eventually(`nobody makes ${name}`, begins);
  try {
    if (existsSync(shared)) return shared;
    // Whole at once: whoever sees it may use it.
    const dir = await makeDirectory();
    await make(join(dir, name));
    await rename(join(dir, name), shared);
    await rm(dir, { recursive: true, force: true });
  } finally {
    await rm(making, { recursive: true });
  }
  return shared;
}
