/** Reads a message in a thread with separate limits, so that a message that crashes its reader crashes nothing else. */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { within } from '../../platform/time.ts';

export interface TrialLimits {
  readonly heap_mb: number;
  readonly time_ms: number;
}

/** Several times what the largest batch of the contract takes. */
const limits_default: TrialLimits = { heap_mb: 192, time_ms: 30_000 };
const young_mb = 16;

/** Resolves with what happened to the reader, as a sentence; undefined: it read the message completely. */
export async function tryReading(
  topic: string,
  payload: Uint8Array,
  { heap_mb, time_ms }: TrialLimits = limits_default,
): Promise<string | undefined> {
  const worker = new Worker(new URL('./trial-thread.ts', import.meta.url), {
    workerData: { topic, payload: new Uint8Array(payload) },
    resourceLimits: { maxOldGenerationSizeMb: heap_mb, maxYoungGenerationSizeMb: young_mb },
  });
  // A stop of the service does not wait for it.
  worker.unref();
  let fault: string | undefined = 'the reader exited before the end of the message';
  worker.on('message', () => (fault = undefined));
  worker.on('error', (error) => (fault = messageOf(error)));
  const exited = new Promise<true>((resolve) => worker.on('exit', () => resolve(true)));
  if (await within(time_ms, exited)) return fault;
  await worker.terminate();
  return `the reader did not finish within ${time_ms} ms`;
}
