/**
 * Loaded into a process whose memory is watched. On SIGUSR2 it collects its garbage and writes what is in use into a file that is
 * named by its pid. What is resident says little: V8 collects when it likes, later on a busy machine, and malloc keeps
 * what was freed between two blocks that are in use; both look like a leak, and hide a slow one.
 */
import { subscribe } from 'node:diagnostics_channel';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, Worker } from 'node:worker_threads';
import koffi from 'koffi';
import { z } from 'zod';
import { collectGarbage } from '../../support/process-stats.ts';

const dir = process.env['KIT_CONNECTOR_COLLECTED_DIR'];
const sizes = ['arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks', 'uordblks', 'fordblks'];
const info = koffi.struct('mallinfo2', Object.fromEntries([...sizes, 'keepcost'].map((n) => [n, 'size_t'])));
const mallinfo = koffi.load('libc.so.6').func('mallinfo2', info, []);
/** In blocks of the heap, and in mappings of their own. */
const used = z.object({ uordblks: z.number(), hblkhd: z.number() });

const threads = new Set<Worker>();
subscribe('worker_threads', (message) => {
  const { worker } = z.object({ worker: z.instanceof(Worker) }).parse(message);
  threads.add(worker.once('exit', () => threads.delete(worker)));
});

// Threads are told of no signal.
if (isMainThread && dir !== undefined)
  process.on('SIGUSR2', () => {
    collectGarbage();
    void write(join(dir, String(process.pid)));
  });

async function write(file: string): Promise<void> {
  // Of all threads, because the unit allows one arena: mallinfo2(3) knows no other.
  const { uordblks, hblkhd } = used.parse(mallinfo());
  const heaps = [...threads].map(async (thread) => (await thread.getHeapStatistics()).used_heap_size);
  const threads_bytes = (await Promise.all(heaps)).reduce((sum, bytes) => sum + bytes, 0);
  const mb = (bytes: number): number => Math.round((10 * bytes) / 2 ** 20) / 10;
  const parts = {
    heap_mb: mb(process.memoryUsage().heapUsed),
    threads_mb: mb(threads_bytes),
    native_mb: mb(uordblks + hblkhd),
  };
  writeFileSync(`${file}.new`, JSON.stringify(parts));
  renameSync(`${file}.new`, file);
}
