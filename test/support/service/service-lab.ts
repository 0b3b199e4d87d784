/** A service on loopback with an empty database in memory, a key that may do everything, and a kit that a test plays. */
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { type HistoryOptions, server_round_ms } from '../../../src/cloud/history/keeper.ts';
import { gatewayRetention } from '../../../src/cloud/history/retention.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import type { ProxyRules } from '../../../src/cloud/access/proxies.ts';
import { type KeyRights, makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { type RequestLimits, request_limits_default } from '../../../src/cloud/http/guards.ts';
import { pageOnDemand, type PageSource } from '../../../src/cloud/http/page/page-files.ts';
import type { TlsSource } from '../../../src/cloud/http/server/secure-server.ts';
import type { SocketLimits } from '../../../src/cloud/live/upgrade.ts';
import { type ServiceOptions, startService } from '../../../src/cloud/start.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import type { WebhookSettings } from '../../../src/cloud/webhooks/operations.ts';
import type { TaskOrder } from '../../../src/cloud/stored/stored.ts';
import { samples } from '../contract-samples.ts';
import { recordingLog } from '../recording-log.ts';

export type ServiceLab = Awaited<ReturnType<typeof startServiceLab>>;

/** Compressing it takes time, and it is the same each time. */
const page_of_sources = pageOnDemand();

interface PublishOptions {
  readonly kit?: string;
  readonly said_ms?: number;
  /** Numbers that are left out before this one. */
  readonly skipped?: number;
}

interface LabOptions {
  readonly hosts?: readonly string[];
  readonly media_origins?: readonly string[];
  readonly tls?: TlsSource | undefined;
  readonly limits?: RequestLimits;
  readonly socket_limits?: SocketLimits | undefined;
  readonly cors_origins?: readonly string[];
  readonly proxies?: ProxyRules;
  readonly map_file?: string;
  /** The service keeps history and has a keeper for it; left out: it keeps it as it came. */
  readonly hasHistory?: boolean;
  readonly webhooks?: WebhookSettings;
  readonly store?: Store;
  readonly files?: ServiceOptions['files'];
  readonly pictures?: ServiceOptions['pictures'];
  readonly video?: ServiceOptions['video'];
  readonly video_settings?: ServiceOptions['video_settings'];
  /** Left out: that of the sources. */
  readonly page?: PageSource;
}

const history: HistoryOptions = {
  retention: gatewayRetention({ days: 30, max_mb: 200 }),
  every_ms: server_round_ms,
  divides_all: false,
};

export async function startServiceLab(
  kit_id: string,
  {
    hosts = [],
    media_origins = [],
    tls,
    limits = request_limits_default,
    socket_limits,
    cors_origins,
    proxies,
    map_file,
    hasHistory,
    webhooks,
    files,
    pictures,
    store: given,
    video,
    video_settings,
    page = page_of_sources,
  }: LabOptions = {},
) {
  const database = openSqlite(':memory:');
  const store = given ?? sqlStore(database, { keepsHistory: hasHistory ?? true });
  const changes = new Changes();
  const log = recordingLog();
  const dispatched: TaskOrder[] = [];
  const cancelled: string[] = [];
  /** The next dispatches fail for this reason. */
  const broker: { fault: string | undefined } = { fault: undefined };
  const reach = (): void => {
    if (broker.fault !== undefined) throw new Error(broker.fault);
  };
  const dispatcher = {
    dispatch: async (order: TaskOrder): Promise<void> => {
      reach();
      dispatched.push(order);
    },
    cancel: async (_kit_id: string, task_id: string): Promise<void> => {
      reach();
      cancelled.push(task_id);
    },
  };
  const service = await startService({
    store,
    dispatcher,
    listen: { host: '127.0.0.1', port: 0 },
    hosts,
    media_origins,
    tls,
    limits,
    socket_limits,
    cors_origins,
    proxies,
    map_file,
    webhooks,
    files,
    pictures,
    video,
    video_settings,
    page,
    version: '0',
    log,
    group_ms: 0,
    unready: () => broker.fault,
    onCommitted: () => undefined,
    changes,
    history: hasHistory ? history : undefined,
  });
  const { keys } = service;
  const giveKey = async (rights: Partial<KeyRights> = {}): Promise<string> => {
    const { text, key } = makeKey(
      { label: 'test', scopes: [...scopes], kits: [kit_id], expires_ms: null, ...rights },
      Date.now(),
    );
    await store.addKey(key);
    await keys.reload();
    return text;
  };
  const revoke = async (text: string): Promise<void> => {
    await store.revokeKey(text.split('_')[1] ?? '');
    await keys.reload();
  };
  let seq = 0;
  return {
    url: service.url,
    store,
    changes,
    log,
    dispatched,
    cancelled,
    broker,
    giveKey,
    revoke,
    key: await giveKey(),
    /** Publishes as the kit does. */
    async publish(
      channel: string,
      data: JsonObject,
      { kit = kit_id, said_ms = Date.now(), skipped = 0 }: PublishOptions = {},
    ): Promise<void> {
      seq += 1 + skipped;
      const text = writeEnvelope({ epoch: 1, seq, time_ms: said_ms }, JSON.stringify(data));
      const reception = readMessage(upTopic(kit, channel), Buffer.from(text));
      if (!reception) throw new Error(`no channel of the contract: ${channel}`);
      await service.take(reception);
    },
    /** Reports the kit's queue, as said at that time. */
    async report(outbox: JsonObject, said_ms: number): Promise<void> {
      await this.publish(channels.state, { ...samples['kitState'], outbox }, { said_ms });
    },
    /** The kit's last word is as old as this, and whoever watches is told of the kit. */
    async heardAt(heard_ms: number): Promise<void> {
      await database.all('UPDATE kits SET heard_ms = ? WHERE kit_id = ?', heard_ms, kit_id);
      changes.publish([{ kind: 'kit', kit_id }]);
    },
    excluded: service.excluded,
    stop: service.stop,
  };
}
