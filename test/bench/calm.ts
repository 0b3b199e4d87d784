/** Waits until the machine has time for a measurement. */
import { readFile } from 'node:fs/promises';
import { sleep } from '../../src/platform/time.ts';

const look_ms = 500;
const idle_share_min = 0.9;
const wait_max_ms = 10_000;

/** Resolves when the processors were idle for a moment, or after `wait_max_ms` with a word about it. */
export async function calm(say: (sentence: string) => void): Promise<void> {
  const deadline_ms = performance.now() + wait_max_ms;
  for (;;) {
    const before = await processorTimes();
    await sleep(look_ms, new AbortController().signal);
    const after = await processorTimes();
    const idle_share = (after.idle - before.idle) / Math.max(1, after.all - before.all);
    if (idle_share >= idle_share_min) return;
    if (performance.now() < deadline_ms) continue;
    say(`the machine is busy (${Math.round(idle_share * 100)} % idle): the figures may be too bad`);
    return;
  }
}

async function processorTimes(): Promise<{ readonly idle: number; readonly all: number }> {
  const line = (await readFile('/proc/stat', 'utf8')).split('\n')[0] ?? '';
  const times = line.split(/\s+/).slice(1).map(Number);
  // The fields are user, nice, system, idle, iowait, ... (proc(5)).
  return { idle: (times[3] ?? 0) + (times[4] ?? 0), all: times.reduce((sum, time) => sum + time, 0) };
}
