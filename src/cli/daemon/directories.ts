/** Creates the directories that the configuration names. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemReason } from '../../errors.ts';
import { texts } from '../texts.ts';

/** Creates the directory and its parents; an error names `key` of the configuration. */
export async function makeDirectory(key: string, dir: string): Promise<void> {
  await makeMissing(dir).catch((error: unknown) => {
    throw new Error(texts.dir_not_made(key, dir, systemReason(error)), { cause: error });
  });
}

/** Level by level: under a file system without support for new directories (/proc), `mkdir` with `recursive` never returns in Node 24. */
async function makeMissing(dir: string): Promise<void> {
  if (existsSync(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir) await makeMissing(parent);
  await mkdir(dir, { mode: 0o750 });
}
