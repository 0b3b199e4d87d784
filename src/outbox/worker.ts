/** The thread that owns SQLite: a disk that takes its time stalls this thread and nothing else. */
import { parentPort, type MessagePort } from 'node:worker_threads';
import { InvariantBroken, messageOf, StorageUnavailable } from '../errors.ts';
import type { StoreOptions } from './protocol.ts';
import { openStore, type Store } from './store.ts';
import type { Failure, Reply, Request } from './thread-messages.ts';

if (!parentPort) throw new InvariantBroken('worker.ts runs as a thread of the connector only');
const port = parentPort;
port.once('message', (options: StoreOptions) => serve(port, options));

function serve(port: MessagePort, options: StoreOptions): void {
  let store: Store;
  try {
    const { store: opened_store, opened } = openStore(options);
    store = opened_store;
    port.postMessage({ id: 0, value: opened } satisfies Reply);
  } catch (error) {
    port.postMessage({ id: 0, failure: failureOf(error) } satisfies Reply);
    port.close();
    return;
  }
  port.on('message', (request: Request) => {
    const reply = answer(store, request);
    port.postMessage(reply, payloadsOf(reply));
    if (request.method === 'close') port.close();
  });
}

/** The arguments fit the method: `StoreClient` sends nothing else. */
function answer(store: Store, { id, method, args }: Request): Reply {
  try {
    const value: unknown = Reflect.apply(store[method], store, args);
    return { id, value };
  } catch (error) {
    return { id, failure: failureOf(error) };
  }
}

function failureOf(error: unknown): Failure {
  return { unavailable: error instanceof StorageUnavailable, message: messageOf(error) };
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
