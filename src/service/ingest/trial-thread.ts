/** Reads one message and reports that it was read. Started by `trial.ts`; ends with its message. */
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { InvariantBroken } from '../../errors.ts';
import { readMessage } from './read-message.ts';

if (!parentPort) throw new InvariantBroken('trial-thread.ts runs as a thread of the service only');
const { topic, payload } = z
  .object({ topic: z.string(), payload: z.instanceof(Uint8Array) })
  .parse(workerData);
readMessage(topic, payload);
parentPort.postMessage('read');
