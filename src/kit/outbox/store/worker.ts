/** The thread that owns SQLite: a disk that takes its time stalls this thread and nothing else. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { deflate_options, historyBytes } from '../../../contract/batch/pack.ts';
import { InvariantBroken, messageOf, StorageUnavailable, StorageUnsure } from '../../../platform/errors.ts';
import { store_clock } from './ages.ts';
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
import { constants, createDeflate } from 'node:zlib';

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

/**
 * Compresses batches beside the thread that packs them, one after the other. `deflateSync` makes a compressor for each
 * batch; draining 1,000,000 messages with it took 25 MB more.
 */
export class BatchDeflater {
  readonly #stream = createDeflate(deflate_options);
  #chunks: Uint8Array[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #failure: Error | undefined;

  constructor() {
    this.#stream.on('data', (chunk: Uint8Array) => this.#chunks.push(chunk));
    this.#stream.on('error', (error) => {
      this.#failure = error;
    });
  }

  /** Returns the compressed bytes in a separate buffer. Calls resolve in order. */
  async deflate(bytes: Uint8Array): Promise<Uint8Array> {
    const deflated = this.#last.then(async () => this.#deflate(bytes));
    this.#last = deflated.catch(() => undefined);
    return deflated;
  }

  async #deflate(bytes: Uint8Array): Promise<Uint8Array> {
    if (this.#failure) throw this.#failure;
    await new Promise<void>((resolve, reject) => {
      this.#stream.once('error', reject);
      this.#stream.write(bytes);
      this.#stream.flush(constants.Z_FINISH, () => {
        this.#stream.off('error', reject);
        resolve();
      });
    });
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#stream.reset();
    return joined(chunks);
  }
}

/** No part of a pool: it is moved to the other thread whole. */
function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
