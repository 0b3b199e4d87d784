/** The thread that owns SQLite: a disk that takes its time stalls this thread and nothing else. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { historyBytes } from '../../../contract/batch/pack.ts';
import { InvariantBroken, messageOf, StorageUnavailable, StorageUnsure } from '../../../platform/errors.ts';
import { store_clock } from './ages.ts';
import { BatchDeflater } from './batch-deflater.ts';
import type { SalvageProgress, StoreOptions } from '../protocol.ts';
import { openStore, type Store } from './store.ts';
import {
  type Failure,
  type Notice,
  type PackedTaken,
  packTaken,
  type Reply,
  type Request,
  unpackWork,
} from '../thread-messages.ts';

/** A request that was carried out; its batch is not compressed yet. */
type Served = Reply | { readonly id: number; readonly taken: PackedTaken };

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
    const ready = compressed(answer(store, request), store, deflater);
    const before = last;
    last = (async () => {
      const reply = await ready;
      // In the order of the requests; the next ones are served meanwhile.
      await before;
      port.postMessage(reply, payloadsOf(reply));
      if (request.method === 'close') port.close();
    })();
  });
}

/** The reply with its batch compressed. */
async function compressed(served: Served, store: Store, deflater: BatchDeflater): Promise<Reply> {
  if (!('taken' in served)) return served;
  const { id, taken } = served;
  const { batch } = taken;
  if (!batch) return { id, value: taken };
  try {
    const payload = await deflater.deflate(batch.payload);
    return { id, value: { ...taken, batch: { ...batch, payload } } satisfies PackedTaken };
  } catch (error) {
    store.release({ rows: [], batches: [batch.token] });
    return { id, failure: failureOf(error) };
  }
}

/** The arguments fit the method: `StoreClient` sends nothing else. */
function answer(store: Store, request: Request): Served {
  const { id } = request;
  try {
    if (request.method === 'take') return { id, taken: packTaken(store.take(request.request)) };
    if (request.method === 'commit') return { id, value: store.commit(unpackWork(request.work)) };
    const value: unknown = Reflect.apply(store[request.method], store, request.args);
    return { id, value };
  } catch (error) {
    return { id, failure: failureOf(error) };
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

/** The memory of a batch, which is moved and not copied. */
function payloadsOf(reply: Reply): ArrayBuffer[] {
  const value = 'value' in reply ? reply.value : undefined;
  const batch = isObject(value) && 'batch' in value ? value.batch : undefined;
  const payload = isObject(batch) && 'payload' in batch ? batch.payload : undefined;
  return payload instanceof Uint8Array && payload.buffer instanceof ArrayBuffer ? [payload.buffer] : [];
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
