/** A service on loopback with an empty database in memory, a key that may do everything, and a kit that a test plays. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { writeEnvelope } from '../../src/contract/envelope.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import { upTopic } from '../../src/contract/topics.ts';
import { Changes } from '../../src/service/changes.ts';
import { readMessage } from '../../src/service/ingest/read-message.ts';
import { identify, type KeyRights, makeKey, scopes } from '../../src/service/principal.ts';
import { acceptSockets } from '../../src/service/live/upgrade.ts';
import { httpApp } from '../../src/service/server/app.ts';
import { Service } from '../../src/service/service.ts';
import { openSqlite } from '../../src/service/store/sqlite.ts';
import { SqlStore } from '../../src/service/store/sql-store.ts';
import type { ApiKey, TaskOrder } from '../../src/service/store/store.ts';
import { recordingLog } from './recording-log.ts';

export type ServiceLab = Awaited<ReturnType<typeof startServiceLab>>;

export async function startServiceLab(kit_id: string) {
  const store = new SqlStore(openSqlite(':memory:'));
  const changes = new Changes();
  const log = recordingLog();
  const dispatched: TaskOrder[] = [];
  const cancelled: string[] = [];
  /** The next dispatches fail for this reason. */
  const broker: { fault: string | undefined } = { fault: undefined };
  const dispatcher = {
    dispatch: async (order: TaskOrder): Promise<void> => {
      if (broker.fault !== undefined) throw new Error(broker.fault);
      dispatched.push(order);
    },
    cancel: async (_kit_id: string, task_id: string): Promise<void> => void cancelled.push(task_id),
  };
  const keys = new Map<string, ApiKey>();
  const giveKey = (rights: Partial<KeyRights> = {}): string => {
    const { text, key } = makeKey(
      { label: 'test', scopes: [...scopes], kits: [kit_id], expires_ms: null, ...rights },
      Date.now(),
    );
    keys.set(key.key_id, key);
    return text;
  };
  const service = new Service({ store, dispatcher, changes, now: Date.now });
  const app = httpApp({
    service,
    log,
    version: '0',
    identify: async (c) => identify(c.req.header('x-api-key'), keys, Date.now()),
    hosts: undefined,
    media_origins: [],
  });
  const stopping = new AbortController();
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  const server = createServer((request, response) => void listener(request, response));
  acceptSockets(server, {
    store,
    changes,
    identifyKey: async (text) => identify(text, keys, Date.now()),
    identifyHandshake: async ({ headers }) => {
      const text = headers['x-api-key'];
      return typeof text === 'string' ? identify(text, keys, Date.now()) : undefined;
    },
    isOwnOrigin: ({ headers }) => headers.origin === undefined || headers.origin === url,
    signal: stopping.signal,
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let seq = 0;
  return {
    url,
    store,
    log,
    dispatched,
    cancelled,
    broker,
    giveKey,
    key: giveKey(),
    /** Publishes as the kit does. */
    async publish(channel: string, data: JsonObject, kit = kit_id): Promise<void> {
      seq += 1;
      const text = writeEnvelope({ epoch: 1, seq, time_ms: Date.now() }, JSON.stringify(data));
      const reception = readMessage(upTopic(kit, channel), Buffer.from(text));
      if (!reception) throw new Error(`no channel of the contract: ${channel}`);
      const committed = await store.commit([reception], Date.now());
      changes.tell(committed.changes);
    },
    async stop(): Promise<void> {
      stopping.abort();
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      await store.close();
    },
  };
}
