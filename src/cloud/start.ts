/** Builds the service on a database and connects its parts. The caller supplies the source of messages and the target of tasks. */
import { everyInTurn } from '../platform/time.ts';
import { messageOf } from '../platform/errors.ts';
import { erasureResource } from './api/history-resources.ts';
import { Changes } from './changes.ts';
import { Gate } from './access/gate.ts';
import { type ListenAt, serveHttp } from './http/server/http-server.ts';
import { retentionSetting } from './history/retention.ts';
import { HistoryKeeper, type HistoryOptions } from './history/keeper.ts';
import { request_limits_default, type RequestLimits } from './http/guards.ts';
import { Ingest } from './ingest/ingest.ts';
import type { Reception } from './read-message.ts';
import { MapFile } from './map/map-file.ts';
import { KeyRing } from './access/keys.ts';
import { type ProxyRules, TrustedProxies } from './access/proxies.ts';
import type { PageSource } from './http/page/page-files.ts';
import type { Meter } from './metrics.ts';
import type { TlsSource } from './http/server/secure-server.ts';
import { socket_limits_default, type SocketLimits } from './live/upgrade.ts';
import { type Dispatcher, type OnPartner, Service } from './service.ts';
import { CloudFiles, type FileSettings, type SendFile } from './files/cloud-files.ts';
import type { VideoSettings } from './video/ice-servers.ts';
import type { VideoSource } from './video/video-relay.ts';
import type { PictureSource } from './http/picture-routes.ts';
import type { ServiceLog } from './service-log.ts';
import type { Committed } from './stored/stored.ts';
import { openWebhooks, type WebhookSettings } from './webhooks/operations.ts';
import { texts } from './texts.ts';
import type { Store } from './store/sql-store.ts';

const check_unanswered_ms = 1_000;
/** Alarms that begin or end with time alone. */
const look_alarms_ms = 1_000;
const look_silences_ms = 60_000;
/** Within this time after a start or without a broker comes what kits have sent meanwhile: until then the service is deaf, not they. */
export const settle_ms = 15_000;
const trim_alarms_ms = 3_600_000;
/** Interval of the look at the marks of the tables: each commit looks as well, and a replica without commits must not read what it does not know. */
const check_schema_ms = 2_000;

export interface ServiceOptions {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly listen: ListenAt;
  /** Host names that are served, beside addresses, `localhost` and names in `.local`; lower case. */
  readonly hosts: readonly string[];
  /** Origins whose pages may use the API with a key; left out: none. */
  readonly cors_origins?: readonly string[] | undefined;
  /** Left out: no proxy in front is trusted. */
  readonly proxies?: ProxyRules | undefined;
  /** WebRTC servers that the page may ask for video. */
  readonly media_origins: readonly string[];
  /** Left out: the default ones. */
  readonly limits?: RequestLimits | undefined;
  /** Left out: plain HTTP. */
  readonly tls?: TlsSource | undefined;
  /** Left out: `socket_limits_default`. */
  readonly socket_limits?: SocketLimits | undefined;
  /** Counts requests, messages and sockets; left out: nothing is counted. */
  readonly meter?: Meter | undefined;
  readonly page: PageSource;
  /** Absolute path of a PMTiles archive, which may be missing; left out: no map is configured. */
  readonly map_file?: string | undefined;
  readonly version: string;
  readonly log: ServiceLog;
  /** Messages that arrive within this time are committed together. */
  readonly group_ms: number;
  /** Returns why tasks and messages cannot be delivered now; undefined: they can. */
  readonly unready: () => string | undefined;
  readonly onCommitted: (committed: Committed) => void;
  /** How history is kept; left out: it is not. */
  readonly history?: HistoryOptions | undefined;
  /** Left out: there are no webhooks. */
  readonly webhooks?: WebhookSettings | undefined;
  /** A client changed a partner asset. Left out: no other side keeps them. */
  readonly onPartner?: OnPartner;
  /** Takes pictures of the kit's cameras; left out: a service elsewhere. */
  readonly pictures?: PictureSource | undefined;
  /** Keeps contents of files; left out: none are kept. */
  readonly files?: { readonly settings: FileSettings; readonly send: SendFile } | undefined;
  /** Where viewers get the video of kits; left out: nowhere. */
  readonly video?: VideoSource | undefined;
  /** Servers that help viewers to connect. */
  readonly video_settings?: VideoSettings | undefined;
  /** Receives the changes of other replicas; left out: there are none. */
  readonly changes?: Changes;
  /** Serves clients; left out: an HTTP server at `listen`. */
  readonly serve?: typeof serveHttp;
}

export interface RunningService {
  readonly url: string;
  readonly store: Store;
  readonly changes: Changes;
  readonly keys: KeyRing;
  /** Returns why the service cannot serve now; undefined: it can. */
  readonly unready: () => Promise<string | undefined>;
  /** Resolves with the reason when another version has changed the tables of the database: the caller stops the service. */
  readonly excluded: Promise<string>;
  /** Resolves when the message is stored. */
  readonly take: (reception: Reception) => Promise<void>;
  /** Resolves when the messages that wait for the database leave room for another batch. */
  readonly room: () => Promise<void>;
  /** Closes the sockets, stores accepted messages, and closes the database. */
  readonly stop: () => Promise<void>;
}

/** Starts the service, which owns the store from then on. Rejects when the database cannot be read or the address cannot be bound. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { store, dispatcher, log, listen, hosts, cors_origins: origins, group_ms, meter } = options;
  const ends = new AbortController();
  const { signal } = ends;
  const changes = options.changes ?? new Changes();
  const webhooks = options.webhooks && openWebhooks({ store, log, meter }, options.webhooks);
  const wake = (): void => webhooks?.deliverer.wake();
  const files =
    options.files &&
    new CloudFiles(options.files.settings, {
      store,
      send: options.files.send,
      changes,
      onStored(bytes) {
        meter?.file(bytes);
        wake();
      },
      log,
      now: Date.now,
      signal,
    });
  const onCommitted = wakingOn((committed) => {
    options.onCommitted(committed);
    files?.note(committed);
  }, wake);
  const keys = new KeyRing(store);
  const hasAnswered = (within_ms: number): boolean => keys.hasReadWithin(within_ms);
  const ingest = new Ingest({ store, changes, log, group_ms, onCommitted, hasAnswered, signal });
  try {
    await keys.keep(log, signal);
    if (options.history) await store.beginHistory(Date.now());
    for (const erasure of await store.mendErasures())
      log.warn({ kit_id: erasure.kit_id, ...erasureResource(erasure) }, texts.log_erasure_mended);
    const proxies = new TrustedProxies(options.proxies, (silent) => log.warn(silent, texts.log_proxy_silent));
    const access = { hosts, origins, proxies };
    const gate = new Gate({ keys, store, ...access, isSecure: options.tls !== undefined });
    const calls = { now: Date.now, onPartner: options.onPartner, onFailed: wake, video: options.video };
    const onRemoved = async (kit_id: string): Promise<void> => {
      await keys.reload();
      await files?.removeKit(kit_id);
    };
    const service = new Service({ store, dispatcher, changes, log, onRemoved, ...calls });
    const exclusion = noticeExclusion(store, log, signal);
    const unready = async (): Promise<string | undefined> =>
      exclusion.reason ?? ingest.unready ?? options.unready();
    const inside = { files, service, store, keys, gate, log, changes, signal, unready, meter };
    const { retention, keeper } = historyOf(options);
    const parts = { ...inside, ...outsideOf(options), retention, webhooks: webhooks?.operations };
    const http = await (options.serve ?? serveHttp)(listen, parts);
    const kept = keeper?.run(signal);
    const delivered = webhooks?.deliverer.run(signal);
    everyInTurn(check_unanswered_ms, signal, async () => failUnansweredTasks({ store, changes, log, wake }));
    const listening = whileListening(options.unready, Date.now);
    everyInTurn(
      look_alarms_ms,
      signal,
      listening(async () => lookAtAlarms({ store, changes, log, wake })),
    );
    const noteSilences = listening(async () => {
      // A database that does not answer is logged by the search for messages.
      if (await store.noteSilences(Date.now()).catch(() => false)) wake();
    });
    if (webhooks) everyInTurn(look_silences_ms, signal, noteSilences);
    everyInTurn(trim_alarms_ms, signal, async () => store.trimAlarms(Date.now()).catch(() => undefined));
    return {
      url: http.url,
      store,
      changes,
      keys,
      async take(reception) {
        await ingest.take(reception);
        meter?.stored(reception.messages.length);
      },
      unready,
      excluded: exclusion.noticed,
      room: async () => ingest.room(),
      async stop() {
        ends.abort();
        await http.closed;
        await ingest.settled();
        await kept;
        await delivered;
        await keeper?.finish();
        await keys.writeUses();
        await store.close();
      },
    };
  } catch (error) {
    ends.abort();
    await store.close();
    throw error;
  }
}

/** What the server takes from the options as it is, or by default. */
function outsideOf({
  map_file,
  media_origins,
  page,
  version,
  tls,
  pictures,
  video_settings,
  limits = request_limits_default,
  socket_limits = socket_limits_default,
}: ServiceOptions) {
  const map = map_file === undefined ? undefined : new MapFile(map_file);
  return { map, media_origins, page, version, tls, pictures, video_settings, limits, socket_limits };
}

/** Nothing where no history is kept. */
function historyOf({ history, store, log }: ServiceOptions) {
  if (!history) return { retention: undefined, keeper: undefined };
  const retention = retentionSetting(store, history.retention);
  return { retention, keeper: new HistoryKeeper({ store, retention, log, now: Date.now }, history) };
}

/** Wakes the deliverer of webhooks after a commit that may have queued messages. */
function wakingOn(onCommitted: ServiceOptions['onCommitted'], wake: () => void) {
  return (committed: Committed): void => {
    if (committed.hasEvents) wake();
    onCommitted(committed);
  };
}

interface Exclusion {
  readonly reason: string | undefined;
  readonly noticed: Promise<string>;
}

/** Looks until another version has changed the tables; a database that does not answer says nothing about them. */
function noticeExclusion(store: Store, log: ServiceLog, signal: AbortSignal): Exclusion {
  const noticed = Promise.withResolvers<string>();
  const exclusion = { reason: undefined as string | undefined, noticed: noticed.promise };
  everyInTurn(check_schema_ms, signal, async () => {
    const reason = await store.schemaFault().catch(() => undefined);
    if (reason === undefined || exclusion.reason !== undefined) return;
    exclusion.reason = reason;
    log.error({ reason }, texts.log_schema_other);
    noticed.resolve(reason);
  });
  return exclusion;
}

type Work = () => Promise<void>;

/** Makes work that is done only where the service has heard kits for long enough that it would know (thingsboard#13715). */
export function whileListening(unready: ServiceOptions['unready'], now: () => number): (work: Work) => Work {
  let deaf_ms = now();
  return (work) => async () => {
    if (unready() !== undefined) deaf_ms = now();
    if (now() - deaf_ms >= settle_ms) await work();
  };
}

interface Unanswered extends Pick<ServiceOptions, 'store' | 'log'> {
  readonly changes: Changes;
  readonly wake: () => void;
}

/** Fails tasks without an answer, which would stay pending otherwise. A later report of the kit still counts. */
async function failUnansweredTasks({ store, changes, log, wake }: Unanswered): Promise<void> {
  try {
    const failed = await store.failSilent(Date.now());
    changes.publish(failed.map((task) => ({ kind: 'task', kit_id: task.kit_id, task })));
    if (failed.length > 0) wake();
  } catch (error) {
    log.warn({ reason: messageOf(error) }, texts.log_sweep_failed);
  }
}

async function lookAtAlarms({ store, changes, log, wake }: Unanswered): Promise<void> {
  try {
    const found = await store.lookAtAlarms(Date.now());
    changes.publish(found);
    if (found.length > 0) wake();
  } catch (error) {
    log.warn({ reason: messageOf(error) }, texts.log_alarms_failed);
  }
}
