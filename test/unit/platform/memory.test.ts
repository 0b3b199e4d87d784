/** The settings of V8 that keep the process small. */
import { describe, expect, it } from 'vitest';
import { loadAfter } from '../../../src/platform/memory.ts';
import { startChild } from '../../support/child.ts';

const memory = new URL('../../../src/platform/memory.ts', import.meta.url).href;

const helpers = `
  const { PerformanceObserver, constants } = await import('node:perf_hooks');
  let collections = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries())
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
  }).observe({ entryTypes: ['gc'] });
  const spin = (ms) => {
    const end_ms = performance.now() + ms;
    while (performance.now() < end_ms);
  };
  // What outlives two collections of the young generation gets into the heap that is collected rarely.
  const kept = [];
  const allocate = () => {
    kept.push(Array.from({ length: 14_000 }, (_, index) => ({ index })));
    if (kept.length > 6) kept.shift();
  };`;

/** Collections of the whole heap while 60 times a megabyte is allocated, with `pause` after each and `first` before all. */
async function collectionsOf(pause: string, first: string): Promise<number> {
  const script = `
    const { growSlowly } = await import(${JSON.stringify(memory)});
    const { setTimeout: sleep } = await import('node:timers/promises');
    ${helpers}
    const end = new AbortController();
    growSlowly(end.signal);
    ${first}
    collections = 0;
    for (let times = 0; times < 60; times += 1) { allocate(); ${pause} }
    console.log(collections);
    end.abort();`;
  const child = startChild(['--max-semi-space-size=1', '--input-type=module', '--eval', script]);
  const { code, stdout, stderr } = await child.ended;
  // V8 prints a warning for a setting that it does not have.
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return Number(stdout);
}

describe('The load of the process', () => {
  it.each([
    ['calm', 0.04, 'calm'],
    ['calm', 0.4, 'calm'],
    ['calm', 0.9, 'busy'],
    ['busy', 0.4, 'busy'],
    ['busy', 0.1, 'calm'],
  ] as const)('%s, then %d of the time used: %s', (before, utilization, after) => {
    expect(loadAfter(before, utilization)).toBe(after);
  });
});

describe('The heap', () => {
  it('is collected more often while the process is calm than while it is busy', async () => {
    const calm = await collectionsOf('await sleep(50);', '');
    const busy = await collectionsOf(
      'spin(50); await sleep(1);',
      'for (let i = 0; i < 50; i += 1) { spin(50); await sleep(1); }',
    );
    expect(calm).toBeGreaterThan(busy);
  });
});

/** Resident kB that a child has more than before, after large buffers came and went; `first` runs before them. */
async function keptAfterLargeBuffers(first: string): Promise<number> {
  const script = `
    const { readFileSync } = await import('node:fs');
    const { returnLargeBuffers } = await import(${JSON.stringify(memory)});
    const resident = () => Number(/VmRSS:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
    ${first}
    // The first buffers of a size teach the C library to keep that much.
    const take = async (bytes) => {
      for (let n = 0; n < 4; n += 1) {
        Buffer.alloc(bytes, 1);
        // A turn of the event loop, in which the collected memory is freed.
        await new Promise((resolve) => setImmediate(resolve));
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await take(1_000);
    const before = resident();
    await take(24_000_000);
    await take(12_000_000);
    // A thread of V8 frees what was collected, later on a busy machine; what the C library keeps stays all the while.
    let least = Infinity;
    for (let n = 0; n < 30; n += 1) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
      least = Math.min(least, resident() - before);
    }
    console.log(least);`;
  const child = startChild(['--expose-gc', '--input-type=module', '--eval', script]);
  const { code, stdout, stderr } = await child.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return Number(stdout);
}

describe('Large buffers', () => {
  it('return to the kernel as soon as they are freed', async () => {
    const kept = await keptAfterLargeBuffers('');
    expect(await keptAfterLargeBuffers('await returnLargeBuffers();')).toBeLessThan(kept / 2);
  });
});
