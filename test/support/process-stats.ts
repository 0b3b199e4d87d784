/** What the kernel says about a process, and V8 about this one. */
import { readdir, readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Memory that is resident now, megabytes. */
export async function residentMb(pid: number): Promise<number> {
  return memoryMb(pid, 'status', 'VmRSS');
}

/**
 * What the process alone costs the machine, megabytes: its anonymous memory, with what it shares with others counted in part.
 * Pages of files are left out: the kernel drops them when it needs room.
 */
export async function anonymousMb(pid: number): Promise<number> {
  return memoryMb(pid, 'smaps_rollup', 'Pss_Anon');
}

async function memoryMb(pid: number, file: 'status' | 'smaps_rollup', name: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1];
  if (kb === undefined) throw new Error(`process ${pid} has no memory`);
  return Number(kb) / 1024;
}

/** Processor time used so far, all threads, seconds. */
export async function processorSeconds(pid: number): Promise<number> {
  const { own_s } = await statOf(pid);
  return own_s;
}

/** The same of a process and its children, also of those that have ended. */
export async function familySeconds(pid: number): Promise<number> {
  const { own_s, ended_s } = await statOf(pid);
  let seconds = own_s + ended_s;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const child = await statOf(Number(name)).catch(() => undefined);
    if (child?.parent === pid) seconds += child.own_s;
  }
  return seconds;
}

async function statOf(pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold anything, so the fields are counted after it: 4 and 14 to 17 of proc(5).
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const seconds = (at: number): number => ((fields[at] ?? 0) + (fields[at + 1] ?? 0)) / ticks_per_second;
  return { parent: fields[1] ?? 0, own_s: seconds(11), ended_s: seconds(13) };
}
const ticks_per_second = 100;

/** Bytes of all buffers of this process that are in use after a collection. */
export function bufferBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** Collects the garbage of this process, which else costs time in the middle of a measurement. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  // What the first finds is freed by another thread; the second waits for that.
  for (let times = 0; times < 2; times += 1)
    if (typeof collect === 'function') Reflect.apply(collect, undefined, []);
}
