/** Directories and programs that live as long as one test. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { program } from './peers.ts';

const execute = promisify(execFile);

/** Runs `fn` with a fresh directory and removes it afterwards. */
export async function withDirectory<T>(fn: (dir: string) => Promise<T>): Promise<T> {
  const dir = await makeDirectory();
  try {
    return await fn(dir);
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** A fresh directory which servers that give up root can enter too. */
export async function makeDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-'));
  await chmod(dir, 0o755);
  return dir;
}

/** Runs a program to its end and answers what it printed; rejects with its error output when it fails. */
export async function run(name: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(program(name), args);
  return stdout;
}
