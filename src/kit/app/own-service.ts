/** The service inside the daemon, for its own kit: fed with what is accepted for delivery, whether or not a broker is there. */
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { OwnServiceConfig } from '../config/service.ts';
import { tlsSource } from '../config/service-tls.ts';
import { json, jsonObject } from '../../contract/json.ts';
import type { PartnerChange } from '../../contract/partners.ts';
import { readChannel, channels } from '../../contract/topics.ts';
import { CommandRefused, messageOf, SchemaRefused } from '../../platform/errors.ts';
import { positionOf, type Row } from '../outbox/row.ts';
import type { Log } from '../../platform/log/log.ts';
import { replaceFile } from '../../platform/replace-file.ts';
import { backoff, every, sleep } from '../../platform/time.ts';
import type { Message } from '../../cloud/read-message.ts';
import { gateway_landed_max, gateway_round_ms } from '../../cloud/history/keeper.ts';
import { gatewayRetention } from '../../cloud/history/retention.ts';
import { pageOnDemand } from '../../cloud/http/page/page-files.ts';
import { makeKey } from '../../cloud/principal.ts';
import { scopes } from '../../cloud/scopes.ts';
import { RequestProblem } from '../../cloud/api/problem.ts';
import type { Dispatcher, OnPartner } from '../../cloud/service.ts';
import type { VideoSource } from '../../cloud/video/video-relay.ts';
import type { PictureSource } from '../../cloud/http/picture-routes.ts';
import { type RunningService, startService } from '../../cloud/start.ts';
import type { ServiceLog } from '../../cloud/service-log.ts';
import { openSqlite } from '../../cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../cloud/store/sql-store.ts';
import type { PartnerState } from '../../cloud/stored/stored.ts';
import { kitState } from './kit-state.ts';
import type { ReportParts } from './status-report.ts';
import { texts } from './texts.ts';
import type { Appender, Draft } from '../outbox/api.ts';

const database_file = 'service.db';
const history_database_file = 'history.db';
const key_file = 'service-key';
const retry_ms = { first: 1_000, max: 10_000 };
/** `Retry-After` for a camera that gives no picture. */
const picture_retry_s = 5;
/** Interval between the states of the kit for the service. */
const state_every_ms = 5_000;
/** Rows that are accepted within this time are stored together. */
const group_ms = 50;

export type OwnService = ReturnType<typeof createOwnService>;

/** Does nothing until `start` is called, so that the rows which that brings about find their way. */
export function createOwnService(config: OwnServiceConfig, parts: ReportParts, log: Log) {
  const { kit_id, state_dir } = parts.config;
  const ends = new AbortController();
  let running: RunningService | undefined;
  let tried = Promise.resolve();
  const publisher = new PartnerPublisher({
    outbox: parts.outbox,
    log,
    partners: async () => (await running?.store.partners(kit_id)) ?? [],
  });
  const attempt = async (): Promise<void> => {
    running = await start(config, parts, log, publisher.onPartner);
    parts.conditions.clear('service');
    const over = new AbortController();
    reportState(running, parts, AbortSignal.any([ends.signal, over.signal]));
    // The last run held its state in memory only.
    parts.hub.announceAll();
    void restartAfter(running, over);
  };
  /** Another version has changed the tables: the service is off until this one may write them again. The kit goes on. */
  const restartAfter = async ({ excluded, stop }: RunningService, over: AbortController): Promise<void> => {
    const reason = await excluded;
    over.abort();
    running = undefined;
    parts.conditions.note('service', texts.service_off(reason));
    tried = stop().then(async () => keepTrying(attempt, ends.signal));
  };
  return {
    /** Undefined while it could not be started. */
    url: () => running?.url,
    /** Holds the key that was made at the first start. */
    key_file: join(state_dir, key_file),
    /** A row that was accepted for delivery. */
    take: (row: Row): void => {
      running?.take(receptionOf(kit_id, [messageOfRow(row, publisher.isAppending)])).catch(() => undefined);
    },
    /** The cloud changed a partner asset. */
    async takePartner(asset_id: string, change: PartnerChange): Promise<void> {
      if (!running) return;
      running.changes.publish(await running.store.takePartner(kit_id, asset_id, change, Date.now()));
      await publisher.publish(asset_id);
    },
    /** Publishes all partner assets again. */
    announcePartners: async (): Promise<void> => publisher.announce(),
    /**
     * Resolves after the first attempt, and retries when that failed: an address of the local network may come
     * later, and the kit has work to do meanwhile.
     */
    async start(): Promise<void> {
      try {
        await attempt();
      } catch (error) {
        const reason = messageOf(error);
        log.error({ reason }, texts.service_failed);
        parts.conditions.note('service', texts.service_off(reason));
        tried = keepTrying(attempt, ends.signal);
      }
    },
    async stop(): Promise<void> {
      ends.abort();
      await tried;
      await running?.stop();
    },
  };
}

async function keepTrying(attempt: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (const pause_ms of backoff(retry_ms.first, retry_ms.max)) {
    await sleep(pause_ms, signal);
    if (signal.aborted) return;
    try {
      return await attempt();
    } catch {
      // The first attempt has said why.
    }
  }
}

async function start(
  config: OwnServiceConfig,
  parts: ReportParts,
  log: Log,
  onPartner: OnPartner,
): Promise<RunningService> {
  const { state_dir, kit_id } = parts.config;
  const store = await openOwnStore(state_dir, config, log);
  await makeFirstKey(store, kit_id, { file: join(state_dir, key_file), log });
  const service = await startService({
    store,
    dispatcher: dispatcherOf(parts),
    ...config,
    tls: tlsSource(config.tls),
    page: pageOnDemand(),
    version: parts.version,
    log,
    group_ms,
    unready: () => undefined,
    onCommitted: () => undefined,
    history: config.history && {
      retention: gatewayRetention(config.history),
      every_ms: gateway_round_ms,
      divides_all: true,
      landed_max: gateway_landed_max,
    },
    onPartner,
    pictures: picturesOf(parts),
    video: videoOf(parts),
  });
  log.info({ url: service.url }, texts.service_started);
  return service;
}

/** Opens the store. A history that cannot be opened is set aside, so that the service is there all the same. */
async function openOwnStore(state_dir: string, { history }: OwnServiceConfig, log: Log): Promise<Store> {
  const file = join(state_dir, database_file);
  const keepsHistory = history !== undefined;
  const history_file = keepsHistory ? join(state_dir, history_database_file) : undefined;
  const error: ServiceLog['error'] = (facts, sentence) => log.error(facts, sentence);
  const open = (): Store =>
    sqlStore(openSqlite(file, { keeping: 'memory', history_file, error }), { keepsHistory });
  try {
    return open();
  } catch (error) {
    if (error instanceof SchemaRefused || history_file === undefined || !existsSync(history_file))
      throw error;
    const damaged = `${history_file}.damaged`;
    for (const end of ['', '-wal', '-shm'])
      await rename(history_file + end, damaged + end).catch(() => undefined);
    log.error({ reason: messageOf(error), file: damaged }, texts.history_damaged);
    return open();
  }
}

function picturesOf({ hub }: Pick<ReportParts, 'hub'>): PictureSource {
  return async (asset_id, age_max_ms) => {
    try {
      return await hub.picture(asset_id, age_max_ms);
    } catch (error) {
      if (error instanceof CommandRefused) throw new RequestProblem('not-found', error.message);
      throw new RequestProblem('unavailable', messageOf(error), { retry_after_s: picture_retry_s });
    }
  };
}

/** Without the broker: viewers that reach this service from elsewhere, as over a VPN. */
function videoOf({ video }: Pick<ReportParts, 'video'>): VideoSource {
  const how = { queued: false };
  return {
    async watch(_, request) {
      const answer = await video.receive(request, how);
      return answer ?? { refused: 'unavailable', reason: texts.no_media };
    },
    async leave(_, request) {
      await video.receive(request, how);
    },
  };
}

/** The same way in as for dispatches from the broker: journaled, checked and reported like any other. */
function dispatcherOf({ tasks }: Pick<ReportParts, 'tasks'>): Dispatcher {
  return {
    async dispatch({
      task_id,
      asset_id,
      command_name,
      payload,
      requested_by,
      requested_by_name,
      created_ms,
    }) {
      const created_at = new Date(created_ms).toISOString();
      const raw = { task_id, asset_id, command_name, payload, requested_by, created_at };
      const author = { via: 'service', user: requested_by_name, uid: null } as const;
      const how = { task_id_in_topic: task_id, retained: false, duplicate: false, author };
      await tasks.receive(raw, how);
    },
    async cancel(_kit_id, task_id) {
      tasks.cancel(task_id);
    },
  };
}

/** Reports the state of the kit, since there may be no broker to do so. Each report counts as one connection in the contract. */
function reportState(service: RunningService, parts: ReportParts, signal: AbortSignal): void {
  const { outbox, clock, config } = parts;
  let seq = 0;
  const report = (): void => {
    seq += 1;
    const data = json.parse({ ...kitState(parts, { online: true, reason: null }) });
    const { time_ms, synced } = clock.stamp();
    const message: Message = {
      channel: { kind: 'state' },
      epoch: outbox.epoch,
      seq,
      time_ms,
      unsynced: !synced,
      data,
    };
    service.take(receptionOf(config.kit_id, [message])).catch(() => undefined);
  };
  report();
  every(state_every_ms, signal, report);
}

function messageOfRow({ id, channel, time_ms, mono_ms, body }: Row, isOwn: boolean): Message | undefined {
  const read = readChannel(channel);
  const data = z.nullable(json).parse(JSON.parse(body));
  return read && { channel: read, ...positionOf(id), time_ms, unsynced: mono_ms !== null, data, isOwn };
}

function receptionOf(kit_id: string, messages: readonly (Message | undefined)[]) {
  const known = messages.filter((message) => message !== undefined);
  return { kit_id, messages: known, cleared: [], retained: false, historical: false, faults: [] };
}

/** Creates the first API key, without which no client can authenticate. Only when no key exists. */
async function makeFirstKey(
  store: Store,
  kit_id: string,
  { file, log }: { readonly file: string; readonly log: Log },
): Promise<void> {
  if ((await store.keys()).length > 0) return;
  const rights = { label: 'first key', scopes: [...scopes], kits: [kit_id], expires_ms: null };
  const { text, key } = makeKey(rights, Date.now());
  await replaceFile(file, `${text}\n`);
  await store.addKey(key);
  log.info({ file }, texts.key_created);
}

// Publishes the partner assets of the kit's own service to the cloud.

export interface PublisherParts {
  readonly outbox: Appender;
  readonly log: Pick<Log, 'warn'>;
  /** None while the service does not run. */
  readonly partners: () => Promise<readonly PartnerState[]>;
}

export class PartnerPublisher {
  readonly #parts: PublisherParts;
  #isAppending = false;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Whether the row that is being accepted is of the service itself, which has its content already. */
  get isAppending(): boolean {
    return this.#isAppending;
  }

  readonly onPartner: OnPartner = ({ asset_id, message }) => {
    if (message) {
      this.#append({ channel: channels.feed(asset_id, message.feed), lane: 'feed', data: message.data });
      return;
    }
    void this.announce(asset_id);
  };

  /** `asset_id` left out: all of them. */
  async publish(asset_id?: string): Promise<void> {
    for (const partner of await this.#parts.partners()) {
      if (asset_id !== undefined && partner.asset_id !== asset_id) continue;
      const data = partner.record && jsonObject.parse({ ...partner.record });
      this.#append({ channel: channels.partner(partner.asset_id), lane: 'presence', data });
    }
  }

  /** The same; never rejects: the kit works without the database of its service. */
  async announce(asset_id?: string): Promise<void> {
    try {
      await this.publish(asset_id);
    } catch (error) {
      this.#parts.log.warn({ reason: messageOf(error) }, texts.partner_failed);
    }
  }

  #append(draft: Draft): void {
    this.#isAppending = true;
    try {
      this.#parts.outbox.append(draft);
    } finally {
      this.#isAppending = false;
    }
  }
}
