/** The thread that owns SQLite: a disk that takes its time stalls this thread and nothing else. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { historyBytes } from '../../../contract/batch/pack.ts';
import { InvariantBroken, messageOf, StorageUnavailable, StorageUnsure } from '../../../platform/errors.ts';
import { store_clock } from './ages.ts';
import { BatchDeflater } from './batch-deflater.ts';
import type { Failure, Notice, Reply, Request, SalvageProgress, StoreOptions, Taken } from '../protocol.ts';
import { openStore, type Store } from './store.ts';

if (!parentPort) throw new InvariantBroken('worker.ts runs as a thread of the connector only');
const port = parentPort;
port.once('message', (options: StoreOptions) => serve(port, options));

function serve(port: MessagePort, options: StoreOptions): void {
  let store: Store;
  try {
    const onSalvage = (salvage: SalvageProgress): void => port.postMessage({ salvage } satisfies Notice);
    const { store: opened_store, opened } = openStore({ ...options, onSalvage }, store_clock, historyBytes);
    store = opened_store;
    port.postMessage({ id: 0, value: opened } satisfies Reply);
  } catch (error) {
    port.postMessage({ id: 0, failure: failureOf(error) } satisfies Reply);
    port.close();
    return;
  }
  const deflater = new BatchDeflater();
  let last: Promise<void> = Promise.resolve();
  port.on('message', (request: Request) => {
    const ready = answer(store, request, deflater);
    const before = last;
    last = (async () => {
      const { reply, moved } = await ready;
      // In the order of the requests; the next ones are served meanwhile.
      await before;
      port.postMessage(reply, moved);
      if (request.method === 'close') port.close();
    })();
  });
}

interface Answer {
  readonly reply: Reply;
  /** The memory of a batch, which is moved and not copied. */
  readonly moved: ArrayBuffer[];
}

/** The store answers at once; only the batch of a `take` is compressed later. */
async function answer(store: Store, request: Request, deflater: BatchDeflater): Promise<Answer> {
  const { id } = request;
  try {
    if (request.method === 'take') return await compressed(id, store.take(...request.args), store, deflater);
    return { reply: { id, value: Reflect.apply(store[request.method], store, request.args) }, moved: [] };
  } catch (error) {
    return { reply: { id, failure: failureOf(error) }, moved: [] };
  }
}

async function compressed(id: number, taken: Taken, store: Store, deflater: BatchDeflater): Promise<Answer> {
  const { batch } = taken;
  if (!batch) return { reply: { id, value: taken }, moved: [] };
  try {
    const payload = await deflater.deflate(batch.payload);
    return { reply: { id, value: { ...taken, batch: { ...batch, payload } } }, moved: [payload.buffer] };
  } catch (error) {
    store.release({ rows: [], batches: [batch.token] });
    throw error;
  }
}

function failureOf(error: unknown): Failure {
  return {
    unavailable: error instanceof StorageUnavailable,
    unsure: error instanceof StorageUnsure,
    fault: error instanceof StorageUnavailable ? error.fault : undefined,
    message: messageOf(error),
  };
}
