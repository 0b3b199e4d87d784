/** Builds the service on a database and joins its parts. Where messages come from, and where tasks go to, is told by the caller. */
import { every } from '../platform/time.ts';
import { messageOf } from '../errors.ts';
import { Changes } from './changes.ts';
import { Gate } from './gate.ts';
import { type ListenAt, serveHttp } from './http-server.ts';
import { Intake } from './ingest/intake.ts';
import type { Reception } from './ingest/read-message.ts';
import { KeyRing } from './keys.ts';
import type { PageSource } from './page-files.ts';
import { type Dispatcher, Service } from './service.ts';
import type { ServiceLog } from './service-log.ts';
import type { Committed, Store } from './store/store.ts';

/** A kit that carried a task out has said so by then, however long the command. */
const silent_task_ms = 15 * 60_000;
const look_for_silent_ms = 30_000;

export interface ServiceOptions {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly listen: ListenAt;
  /** Host names that are served, beside addresses, `localhost` and names in `.local`; lower case. */
  readonly hosts: readonly string[];
  /** WebRTC servers that the page may ask for video. */
  readonly media_origins: readonly string[];
  readonly page: PageSource;
  readonly version: string;
  readonly log: ServiceLog;
  /** Messages that arrive within this time are committed together. */
  readonly group_ms: number;
  /** Why tasks and messages do not get through now; undefined: they do. */
  readonly unready: () => string | undefined;
  readonly onCommitted: (committed: Committed) => void;
  /** Where changes are told that other replicas have stored; left out: there are none. */
  readonly changes?: Changes;
}

export interface RunningService {
  readonly url: string;
  readonly store: Store;
  readonly keys: KeyRing;
  /** Resolves when the message is stored. */
  readonly take: (reception: Reception) => Promise<void>;
  /** Says goodbye to sockets, stores what was taken, and closes the database. */
  readonly stop: () => Promise<void>;
}

/** Rejects when the database cannot be read or the address not be listened on. The store is the service's from then on. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { store, dispatcher, log, listen, hosts, group_ms, onCommitted } = options;
  const ends = new AbortController();
  const { signal } = ends;
  const changes = options.changes ?? new Changes();
  const intake = new Intake({ store, changes, log, group_ms, onCommitted, signal });
  const keys = new KeyRing(store);
  try {
    await keys.keep(log, signal);
    const gate = new Gate({ keys, store, hosts });
    const service = new Service({ store, dispatcher, changes, log, now: Date.now });
    const unready = async (): Promise<string | undefined> => intake.unready ?? options.unready();
    const { media_origins, page, version } = options;
    const parts = { service, store, gate, log, changes, signal, media_origins, page, version, unready };
    const http = await serveHttp(listen, parts);
    every(look_for_silent_ms, signal, () => void failSilentTasks({ store, changes, log }));
    return {
      url: http.url,
      store,
      keys,
      take: async (reception) => intake.take(reception),
      async stop() {
        ends.abort();
        await http.closed;
        await intake.settled();
        await store.close();
      },
    };
  } catch (error) {
    ends.abort();
    await store.close();
    throw error;
  }
}

/** A task of which nobody ever hears must not stay pending for ever. The kit's own word still counts when it comes. */
async function failSilentTasks({
  store,
  changes,
  log,
}: Pick<ServiceOptions, 'store' | 'log'> & { readonly changes: Changes }) {
  try {
    const now_ms = Date.now();
    const failed = await store.failSilent(
      now_ms - silent_task_ms,
      'the kit has not answered for 15 minutes; outcome unknown',
      now_ms,
    );
    changes.tell(failed.map((task) => ({ kind: 'task', kit_id: task.kit_id, task })));
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'tasks without an answer could not be looked for');
  }
}
