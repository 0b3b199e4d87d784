/** Finds the processes that hold a device or a socket open, as far as this user may see them. */
import { readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

const processes_max = 4_096;
/** The command line of the daemon, with zero bytes between its arguments. */
const ourselves = /(?:^|[/\0])kit-connector(?:\.mjs)?(?:[/\0]|$)/u;

export interface Holder {
  /** `socat (process 12)` */
  readonly name: string;
  readonly isOurs: boolean;
}

/** `target`: a path, or `socket:[INODE]`. `proc`: mount point of procfs. */
export async function holdersOf(target: string, proc: string): Promise<readonly Holder[]> {
  const pids = (await readdir(proc).catch(() => []))
    .filter((name) => /^\d+$/u.test(name))
    .slice(0, processes_max);
  const holders: Holder[] = [];
  for (const pid of pids) {
    if (!(await holds(join(proc, pid, 'fd'), target))) continue;
    const command = await readTextUpTo(join(proc, pid, 'cmdline'), table_bytes_max).catch(() => '');
    const program = basename(command.split('\0')[0] ?? '') || 'another program';
    holders.push({ name: `${program} (process ${pid})`, isOurs: ourselves.test(command) });
  }
  return holders;
}

async function holds(fd_dir: string, target: string): Promise<boolean> {
  const fds = await readdir(fd_dir).catch(() => []);
  for (const fd of fds) {
    if ((await readlink(join(fd_dir, fd)).catch(() => '')) === target) return true;
  }
  return false;
}
