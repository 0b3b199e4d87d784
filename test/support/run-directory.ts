/** One directory for everything that a run of the tests puts into the temporary one, and an eye on the processes that it leaves. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../src/platform/time.ts';
import { program } from './peers.ts';

/** A process that was told to end has this long. */
const grace_ms = 5_000;
const look_every_ms = 100;
/** A directory of a run is named so, and holds a file that says which process made it and when that began. */
const prefix = 'kc-';
const owner_file = 'made-by';

/**
 * For `globalSetup` of vitest: what tests and their children make with `os.tmpdir()` is below one directory, which is
 * removed after the run even where a test was killed, and by the next one where the run was. Processes that outlive the run are
 * named, ended, and fail it.
 */
export function setup(): () => Promise<void> {
  removeLeft(tmpdir());
  // Short, because the path of a unix socket has room for 107 characters.
  const dir = mkdtempSync(join(tmpdir(), prefix));
  writeFileSync(join(dir, owner_file), `${process.pid} ${beginOf(process.pid)}`);
  // Servers that give up root must come through.
  chmodSync(dir, 0o755);
  process.env['TMPDIR'] = dir;
  return async () => {
    const left = await orphans(dir);
    for (const { pid } of left) killed(pid);
    remove(dir);
    if (left.length === 0) return;
    const names = left.map(({ pid, command }) => `${pid} ${command}`).join('\n  ');
    console.error(`These processes outlived the tests that started them:\n  ${names}`);
    process.exitCode = 1;
  };
}

/** Removes from `base` what runs that were killed have left: processes, mounted disks and files. */
export function removeLeft(base: string): void {
  for (const name of readdirSync(base)) {
    const dir = join(base, name);
    if (!name.startsWith(prefix) || !isLeft(dir)) continue;
    for (const { pid } of orphansNow(dir)) killed(pid);
    remove(dir);
  }
}

function isLeft(dir: string): boolean {
  try {
    const [pid, begin] = readFileSync(join(dir, owner_file), 'utf8').split(' ');
    return begin !== undefined && beginOf(Number(pid)) !== begin;
  } catch {
    // Not of a run, or of another user.
    return false;
  }
}

/** When a process began, in ticks of the machine; undefined: there is none. */
function beginOf(pid: number): string | undefined {
  try {
    return statOf(pid)[19];
  } catch {
    return undefined;
  }
}

function remove(dir: string): void {
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .filter((point) => point.startsWith(`${dir}/`));
  for (const point of mounted.toReversed()) tried('umount', '--lazy', point);
  for (const device of readdirSync('/sys/block'))
    if (backingFile(device)?.startsWith(`${dir}/`)) tried('losetup', '--detach', `/dev/${device}`);
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}

function backingFile(device: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8');
  } catch {
    // No loop device, or none in use.
    return undefined;
  }
}

function tried(name: string, ...args: readonly string[]): void {
  try {
    execFileSync(program(name), args, { stdio: 'ignore' });
  } catch {
    // Somebody was quicker.
  }
}

interface Process {
  readonly pid: number;
  readonly command: string;
}

async function orphans(dir: string): Promise<readonly Process[]> {
  const deadline_ms = performance.now() + grace_ms;
  for (;;) {
    const found = orphansNow(dir);
    if (found.length === 0 || performance.now() > deadline_ms) return found;
    await sleep(look_every_ms, new AbortController().signal);
  }
}

function orphansNow(dir: string): readonly Process[] {
  return readdirSync('/proc').flatMap((entry) => orphan(Number(entry), dir));
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

function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

/** From the state of the process on. The name of the program, in brackets before it, may hold anything. */
function statOf(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It was quicker.
  }
}
