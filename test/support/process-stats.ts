/** What the kernel says about a process. */
import { readFile } from 'node:fs/promises';

/** Memory that is resident now, megabytes. */
export async function residentMb(pid: number): Promise<number> {
  return memoryMb(pid, 'VmRSS');
}

/** The part of it that is pages of files, mostly of programs, which the kernel can take back at any time. */
export async function filePagesMb(pid: number): Promise<number> {
  return memoryMb(pid, 'RssFile');
}

async function memoryMb(pid: number, name: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`process ${pid} has no memory`);
  return Number(kb) / 1024;
}

/** Processor time used so far, all threads, seconds. */
export async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold anything, so the fields are counted after it: 14 and 15 of proc(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks_per_second;
}
const ticks_per_second = 100;
