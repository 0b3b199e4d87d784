/** Reads one message in a thread, whose memory `reading-memory.test.ts` limits. */
import { workerData } from 'node:worker_threads';
import { readMessage } from '../../../../src/cloud/read-message.ts';

const { topic, payload } = workerData as { readonly topic: string; readonly payload: Uint8Array };
readMessage(topic, payload);
