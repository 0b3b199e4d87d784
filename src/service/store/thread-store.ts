/** The store on SQLite as the rest of the service sees it: every question goes to the thread that owns the file. */
import { Worker } from 'node:worker_threads';
import { InvariantBroken, messageOf, StorageUnavailable } from '../../errors.ts';
import type { Store } from './store.ts';

export interface ThreadCall {
  readonly id: number;
  readonly method: keyof Store;
  readonly args: readonly unknown[];
}

export interface ThreadReply {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: { readonly unavailable: boolean; readonly message: string };
}

/** Only the one who asked knows what kind of value it is. */
type Received = Omit<ThreadReply, 'value'> & { readonly value: never };

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

const memory = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 } as const;

/** Starts the thread and opens the file in it. Rejects with `StorageUnavailable` when the file cannot be used. */
export async function openThreadStore(file: string): Promise<Store> {
  const worker = new Worker(new URL('./thread.ts', import.meta.url), { resourceLimits: memory });
  const waiting = new Map<number, Waiting>();
  let last_id = 0;
  let ended: Error | undefined;
  const fail = (error: Error): void => {
    ended = error;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  worker.on('message', ({ id, value, fault }: Received) => {
    const asked = waiting.get(id);
    waiting.delete(id);
    if (fault) asked?.reject(errorOf(fault));
    else asked?.resolve(value);
  });
  worker.on('error', (error) =>
    fail(new StorageUnavailable(`the thread of the database ended: ${messageOf(error)}`)),
  );
  worker.on('exit', () => fail(new StorageUnavailable('the database is closed')));
  const opened = new Promise<void>((resolve, reject) => waiting.set(0, { resolve, reject }));
  worker.postMessage(file);
  await opened;
  return methodsOf(
    <K extends keyof Store>(name: K) =>
      async (...args: Parameters<Store[K]>): Promise<Awaited<ReturnType<Store[K]>>> => {
        if (ended) throw ended;
        const id = (last_id += 1);
        const answer = new Promise<Awaited<ReturnType<Store[K]>>>((resolve, reject) =>
          waiting.set(id, { resolve, reject }),
        );
        worker.postMessage({ id, method: name, args } satisfies ThreadCall);
        return answer;
      },
  );
}

type Method = <K extends keyof Store>(
  name: K,
) => (...args: Parameters<Store[K]>) => Promise<Awaited<ReturnType<Store[K]>>>;

/** Each method of the store as a question to the thread. */
function methodsOf(method: Method): Store {
  return {
    commit: method('commit'),
    kits: method('kits'),
    kit: method('kit'),
    nameKit: method('nameKit'),
    assets: method('assets'),
    asset: method('asset'),
    commands: method('commands'),
    feeds: method('feeds'),
    addPartner: method('addPartner'),
    removePartner: method('removePartner'),
    pushFix: method('pushFix'),
    addTask: method('addTask'),
    task: method('task'),
    tasks: method('tasks'),
    failTask: method('failTask'),
    failSilent: method('failSilent'),
    claim: method('claim'),
    answer: method('answer'),
    unclaim: method('unclaim'),
    addSession: method('addSession'),
    session: method('session'),
    endSession: method('endSession'),
    keys: method('keys'),
    addKey: method('addKey'),
    revokeKey: method('revokeKey'),
    acks: method('acks'),
    close: method('close'),
  };
}

function errorOf({ unavailable, message }: NonNullable<ThreadReply['fault']>): Error {
  return unavailable ? new StorageUnavailable(message) : new InvariantBroken(message);
}
