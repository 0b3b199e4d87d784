/**
 * Loaded into a process with `--import`: writes each turn of its event loop that took long, with the processor time that its thread
 * spent in it. On a busy machine a turn lasts as long as other programs let it; its processor time is its own.
 */
import { appendFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { env, pid, resourceUsage, threadCpuUsage } from 'node:process';
import { isMainThread } from 'node:worker_threads';

const tick_ms = 5;
const long_ms = 50;

const usage = (): { wall_ms: number; cpu_ms: number; kernel_ms: number; page_faults: number } => {
  const { user, system } = threadCpuUsage();
  return {
    wall_ms: performance.now(),
    cpu_ms: (user + system) / 1_000,
    kernel_ms: system / 1_000,
    // Of all threads.
    page_faults: resourceUsage().minorPageFault,
  };
};

const folder = env['KIT_CONNECTOR_LOOP_PROBE'];
if (isMainThread && folder !== undefined) {
  // What garbage collection took of a turn, by the clock.
  let gc_ms = 0;
  const count = (entries: readonly { readonly duration: number }[]): void => {
    for (const { duration } of entries) gc_ms += duration;
  };
  const collections = new PerformanceObserver((list) => count(list.getEntries()));
  collections.observe({ entryTypes: ['gc'] });

  let last = usage();
  setInterval(() => {
    const now = usage();
    const turn = { wall_ms: now.wall_ms - last.wall_ms - tick_ms, cpu_ms: now.cpu_ms - last.cpu_ms };
    const kernel_ms = now.kernel_ms - last.kernel_ms;
    const page_faults = now.page_faults - last.page_faults;
    last = now;
    count(collections.takeRecords());
    const gc = gc_ms;
    gc_ms = 0;
    if (turn.wall_ms < long_ms && turn.cpu_ms < long_ms) return;
    const rounded = {
      wall_ms: Math.round(turn.wall_ms),
      cpu_ms: Math.round(turn.cpu_ms),
      kernel_ms: Math.round(kernel_ms),
      gc_ms: Math.round(gc),
      page_faults,
    };
    appendFileSync(`${folder}/${pid}.turns`, `${JSON.stringify({ ended_ms: Date.now(), ...rounded })}\n`);
  }, tick_ms).unref();
}
