/** Names an input that a parser is never done with, or that fills the memory: the thread that reads it cannot. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { mkdirSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Target } from './engine.ts';

/** Processor time of the process for one input. */
const hang_ms = 5_000;
/** Memory that the process takes more since the input was begun: soon there is none left, and nobody who could tell. */
const grown_bytes_max = 1024 ** 3;
const look_ms = 250;
const input_bytes_max = 64 * 1024;
const name_bytes_max = 64;

/** What both threads share: how many inputs were begun, and the newest one. */
interface Shared {
  readonly counts: Int32Array;
  readonly name: Buffer;
  readonly input: Buffer;
}

const counts_bytes = 8;

function sharedIn(memory: SharedArrayBuffer): Shared {
  return {
    counts: new Int32Array(memory, 0, 2),
    name: Buffer.from(memory, counts_bytes, name_bytes_max),
    input: Buffer.from(memory, counts_bytes + name_bytes_max, input_bytes_max),
  };
}

/** Starts the thread that watches. Returns what has to be called before each input; an input that hangs is in `folder`. */
export function watchHangs(folder: string): (target: Target, input: Buffer) => void {
  const memory = new SharedArrayBuffer(counts_bytes + name_bytes_max + input_bytes_max);
  const shared = sharedIn(memory);
  const thread = new Worker(new URL(import.meta.url), { workerData: { memory, folder }, execArgv: [] });
  thread.unref();
  let named: Target | undefined;
  return (target, input) => {
    if (named !== target) shared.name.fill(0).write(target.name);
    named = target;
    input.copy(shared.input);
    shared.counts[1] = input.length;
    shared.counts[0] = (shared.counts[0] ?? 0) + 1;
  };
}

function watch({ counts, name, input }: Shared, folder: string): void {
  let [seen, since_ms, since_bytes] = [-1, 0, 0];
  setInterval(() => {
    const { user, system } = process.cpuUsage();
    const now_ms = (user + system) / 1_000;
    const now_bytes = process.memoryUsage.rss();
    const begun = counts[0] ?? 0;
    if (begun !== seen) [seen, since_ms, since_bytes] = [begun, now_ms, now_bytes];
    else if (begun > 0 && now_ms - since_ms > hang_ms) report(`after ${hang_ms} ms of processor time`);
    else if (begun > 0 && now_bytes - since_bytes > grown_bytes_max)
      report(`and took ${grown_bytes_max / 1024 ** 2} MiB of memory`);
  }, look_ms);

  function report(what: string): void {
    const target = name.toString().replaceAll('\0', '');
    const file = join(folder, `finding-${target}-hangs`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, Buffer.from(input.subarray(0, counts[1])));
    // A console of a worker writes through the thread that is busy.
    writeSync(2, `${target} is not done with an input ${what}\n  input: ${file}\n`);
    process.kill(process.pid, 'SIGKILL');
  }
}

if (!isMainThread && parentPort) {
  const { memory, folder } = z
    .object({ memory: z.instanceof(SharedArrayBuffer), folder: z.string() })
    .parse(workerData);
  watch(sharedIn(memory), folder);
}
