/** The thread that owns the service's SQLite file, so that a slow disk stalls no request and no heartbeat. */
import { parentPort } from 'node:worker_threads';
import { InvariantBroken, messageOf, SchemaRefused, StorageUnavailable } from '../../platform/errors.ts';
import { openSqlite } from '../sql/sqlite.ts';
import { sqlStore, type Store } from './sql-store.ts';
import type { ServiceLog } from '../service-log.ts';
import type { ThreadCall, ThreadNotice, ThreadOptions, ThreadReply } from './thread-store.ts';

if (!parentPort) throw new InvariantBroken('thread.ts runs as a thread of the service only');
const port = parentPort;

port.once('message', ({ file, keepsHistory, upgrade }: ThreadOptions) => {
  try {
    const error: ServiceLog['error'] = (facts, sentence) =>
      port.postMessage({ facts, sentence } satisfies ThreadNotice);
    const store = sqlStore(openSqlite(file, { upgrade, error }), { keepsHistory });
    port.on('message', (call: ThreadCall) => void answer(store, call));
    port.postMessage({ id: 0, value: undefined } satisfies ThreadReply);
  } catch (error) {
    port.postMessage({ id: 0, fault: faultOf(error) } satisfies ThreadReply);
    port.close();
  }
});

/** Runs a call. Name and arguments match: `thread-store.ts` sends what the types of the store allow. */
async function answer(store: Store, { id, method, args }: ThreadCall): Promise<void> {
  try {
    const call: unknown = Reflect.get(store, method);
    if (typeof call !== 'function') throw new InvariantBroken(`the store has no method ${method}`);
    const value: unknown = await Reflect.apply(call, store, args);
    port.postMessage({ id, value } satisfies ThreadReply);
  } catch (error) {
    port.postMessage({ id, fault: faultOf(error) } satisfies ThreadReply);
  }
  if (method === 'close') port.close();
}

function faultOf(error: unknown): NonNullable<ThreadReply['fault']> {
  const message = messageOf(error);
  if (error instanceof SchemaRefused) return { kind: 'refused', message };
  return { kind: error instanceof StorageUnavailable ? 'unavailable' : 'broken', message };
}
