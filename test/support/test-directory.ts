import { rm } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import { makeDirectory } from './temporary.ts';

/** A fresh directory that is removed with all that is in it when the test ends. */
export async function testDirectory(): Promise<string> {
  const dir = await makeDirectory();
  onTestFinished(async () => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
}
