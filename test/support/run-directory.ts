/** One directory for everything that a run of the tests puts into the temporary one, and an eye on the processes that it leaves. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../src/platform/time.ts';

/** A process that was told to end has this long. */
const grace_ms = 5_000;
const look_every_ms = 100;

/**
 * For `globalSetup` of vitest: what tests and their children make with `os.tmpdir()` is below one directory, which is
 * removed after the run even where a test was killed. Processes that outlive the run are named, ended, and fail it.
 */
export function setup(): () => Promise<void> {
  // Short, because the path of a unix socket has room for 107 characters.
  const dir = mkdtempSync(join(tmpdir(), 'kc-'));
  // Servers that give up root must come through.
  chmodSync(dir, 0o755);
  process.env['TMPDIR'] = dir;
  return async () => {
    const left = await orphans(dir);
    for (const { pid } of left) killed(pid);
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    if (left.length === 0) return;
    const names = left.map(({ pid, command }) => `${pid} ${command}`).join('\n  ');
    console.error(`These processes outlived the tests that started them:\n  ${names}`);
    process.exitCode = 1;
  };
}

interface Process {
  readonly pid: number;
  readonly command: string;
}

async function orphans(dir: string): Promise<readonly Process[]> {
  const deadline_ms = performance.now() + grace_ms;
  for (;;) {
    const found = readdirSync('/proc').flatMap((entry) => orphan(Number(entry), dir));
    if (found.length === 0 || performance.now() > deadline_ms) return found;
    await sleep(look_every_ms, new AbortController().signal);
  }
}

/** The process, if it has the environment of this run and does not descend from us any more. */
function orphan(pid: number, dir: string): readonly Process[] {
  try {
    if (!Number.isInteger(pid) || descends(pid)) return [];
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    if (!environment.includes(`TMPDIR=${dir}`)) return [];
    return [{ pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
  } catch {
    // It ended meanwhile, or it belongs to somebody else.
    return [];
  }
}

function descends(pid: number): boolean {
  for (let each = pid; each > 1; each = parentOf(each)) if (each === process.pid) return true;
  return false;
}

/** The name of the program, in brackets before it, may hold anything. */
function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It was quicker.
  }
}
