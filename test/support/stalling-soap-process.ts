/** A SOAP thread that never comes back from reading one reply, for the test of what watches it. */
import { parentPort, workerData } from 'node:worker_threads';
import {
  cell_camera,
  cell_count,
  type FromThread,
  type ToThread,
} from '../../drivers/onvif/soap-messages.ts';

const marks = new Int32Array(workerData as SharedArrayBuffer);
parentPort?.on('message', (order: ToThread) => {
  if (order.kind !== 'call' || order.request.body === 'wait') return;
  if (order.request.body === 'stall') {
    Atomics.add(marks, cell_count, 1);
    Atomics.store(marks, cell_camera, order.camera);
    for (;;);
  }
  const body = { text: '', attributes: {}, children: {} };
  const outcome = { kind: 'reply', body, local_address: undefined } as const;
  parentPort?.postMessage({ id: order.id, outcome } satisfies FromThread);
});
