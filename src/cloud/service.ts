/** The operations of the service, independent of the transport. Every method throws `RequestProblem` when it rejects a request. */
import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { CommandDefinition } from '../contract/assets.ts';
import { messageOf } from '../platform/errors.ts';
import {
  type changeAsset,
  type changeKit,
  type createAsset,
  metadata_bytes_max,
  type pushLocation,
} from './api/requests.ts';
import type {
  AssetDetails,
  AssetFeeds,
  AssetResource,
  CommandResource,
  CreatedAsset,
  KitResource,
  KitTelemetrySnapshot,
  QueueResource,
  taskList,
  TaskResource,
} from './api/resources.ts';
import type { Changes } from './changes.ts';
import { isReadable, payloadFaults } from './api/payload.ts';
import { linkOf, type LinkResource } from './api/kit-resources.ts';
import { mergePatch } from './merge-patch.ts';
import { maySee, type Principal } from './principal.ts';
import { type ListedKit, listKits } from './kit-list.ts';
import { RequestProblem } from './api/problem.ts';
import { cursorAfter, taskPage } from './task-pages.ts';
import type { ServiceLog } from './service-log.ts';
import { fixChanges, partner_assets_max } from './store/partners.ts';
import type {
  PushedFix,
  StoredAsset,
  StoredFeed,
  StoredKit,
  StoredTask,
  TaskOrder,
  TaskQuery,
} from './stored/stored.ts';
import {
  assetDetails,
  byType,
  isDegraded,
  commandResource,
  createdAsset,
  findLink,
  isOnline,
  listedAsset,
  queueResource,
  taskResource,
  telemetrySnapshot,
  unreportedKit,
} from './api/views.ts';
import { texts } from './texts.ts';
import type { JsonObject } from '../contract/json.ts';
import type { Store } from './store/sql-store.ts';
import type { VideoSource } from './video/video-relay.ts';

/** `message`: a fix that was pushed; left out: the asset was registered, changed or removed. */
export type OnPartner = (changed: {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly message?: StoredFeed;
}) => void;

/** Commands whose unsupported schemas were logged. */
const unreadable_max = 1_000;
/** Until the answer of a kit whose command names no limit. */
const answer_default_ms = 15 * 60_000;
/** For the way of the report, beside the limit of the command. */
const report_grace_ms = 5_000;
/** `Retry-After` for a camera or media server that gives no video now. */
const video_retry_s = 10;
const refused_as = {
  no_stream: 'not-found',
  link: 'link-forbids',
  codec: 'not-playable',
  unavailable: 'unavailable',
} as const;
/** `Retry-After` for an offline kit. */
const offline_retry_s = 30;

export interface Dispatcher {
  /** Sends a task to its kit. Rejects when it cannot be sent: the task fails then. */
  readonly dispatch: (order: TaskOrder) => Promise<void>;
  readonly cancel: (kit_id: string, task_id: string) => Promise<void>;
}

export interface ServiceParts {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly changes: Changes;
  readonly log: ServiceLog;
  readonly now: () => number;
  /** Left out: no other side keeps partner assets. */
  readonly onPartner?: OnPartner | undefined;
  /** Called when a task has failed without a report of its kit. */
  readonly onFailed?: (() => void) | undefined;
  /** Called when a kit was removed; left out: nothing else knows of it. */
  readonly onRemoved?: ((kit_id: string) => Promise<void>) | undefined;
  /** Left out: no viewer gets video here. */
  readonly video?: VideoSource | undefined;
}

type Pushed = z.output<typeof pushLocation> & { readonly asset_id: string };

export class Service {
  readonly #parts: ServiceParts;
  readonly #unreadable = new Set<string>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  async kits(principal: Principal): Promise<KitResource[]> {
    return (await this.listed(principal)).map(({ kit }) => kit);
  }

  /** Returns the ids of all kits of the key. */
  async kitIds({ kits }: Principal): Promise<readonly string[]> {
    return kits === '*' ? this.#parts.store.kitIds() : kits;
  }

  /** Returns these kits as List Kits has them; kits that the key does not have are left out. */
  async listed(principal: Principal, kit_ids?: readonly string[]): Promise<readonly ListedKit[]> {
    return listKits(this.#parts.store, principal, { now_ms: this.#parts.now(), kit_ids });
  }

  /** Returns these kits for every key that has them; kits which never reported are left out. */
  async summaries(kit_ids: readonly string[]): Promise<readonly ListedKit[]> {
    return listKits(this.#parts.store, { kits: '*' }, { now_ms: this.#parts.now(), kit_ids });
  }

  /** Throws `not-found` for a kit that the key does not have, or that nobody has seen. */
  async requireKit(principal: Principal, kit_id: string): Promise<void> {
    await this.#kit(principal, kit_id);
  }

  async kit(principal: Principal, kit_id: string): Promise<KitResource> {
    await this.requireKit(principal, kit_id);
    const [listed] = await this.listed(principal, [kit_id]);
    if (!listed) throw new RequestProblem('not-found', texts.no_kit(kit_id));
    return listed.kit;
  }

  /** Throws `out-of-range` when operators have set none. */
  async timeZone(principal: Principal, kit_id: string): Promise<string> {
    const { label } = await this.#kit(principal, kit_id);
    if (label?.time_zone) return label.time_zone;
    throw new RequestProblem('out-of-range', texts.no_time_zone);
  }

  /** Names or tags a kit. */
  async changeKit(
    principal: Principal,
    kit_id: string,
    change: z.output<typeof changeKit>,
  ): Promise<KitResource> {
    const { label } = await this.#kit(principal, kit_id);
    const { name = label?.name ?? null, tags = label?.tags ?? [], time_zone = label?.time_zone } = change;
    await this.#parts.store.setKitLabel(kit_id, { name, tags: [...new Set(tags)], time_zone });
    this.#parts.changes.publish([{ kind: 'kit', kit_id }]);
    return this.kit(principal, kit_id);
  }

  /** Deletes everything that is kept of the kit, until it sends something itself. Throws `conflict` while it is online. */
  async removeKit(principal: Principal, kit_id: string): Promise<void> {
    const { store, changes, log, now, onRemoved } = this.#parts;
    const kit = await this.#kit(principal, kit_id);
    const now_ms = now();
    if (isOnline(kit, now_ms)) throw new RequestProblem('conflict', texts.kit_online);
    await store.eraseHistory({ kit_id, before_ms: now_ms }, now_ms);
    changes.publish(await store.removeKit(kit_id, now_ms));
    await onRemoved?.(kit_id);
    log.info({ kit_id, requested_by_name: principal.label, key_id: principal.key_id }, texts.log_kit_removed);
  }

  /** Throws `unavailable` when the kit is offline and never reported. */
  async telemetry(principal: Principal, kit_id: string): Promise<KitTelemetrySnapshot> {
    const kit = await this.#kit(principal, kit_id);
    const now_ms = this.#parts.now();
    if (!isOnline(kit, now_ms) && Object.keys(kit.parts).length === 0) {
      throw new RequestProblem('unavailable', texts.nothing_reported, {
        retry_after_s: offline_retry_s,
      });
    }
    return telemetrySnapshot(kit, now_ms);
  }

  async queue(principal: Principal, kit_id: string): Promise<QueueResource> {
    return queueResource(await this.#kit(principal, kit_id), this.#parts.now());
  }

  /** Throws `unavailable` as `telemetry`. */
  async links(principal: Principal, kit_id: string): Promise<LinkResource[]> {
    return (await this.telemetry(principal, kit_id)).wans.map(linkOf);
  }

  /** Throws `unavailable` as `telemetry`. */
  async link(principal: Principal, kit_id: string, name: string): Promise<LinkResource> {
    const { wans } = await this.telemetry(principal, kit_id);
    const link = findLink(wans, name);
    if (link) return linkOf(link);
    const known = wans.map((each) => each.name).join(', ') || 'none';
    throw new RequestProblem('not-found', texts.no_link(name, known));
  }

  /** `degraded`: only assets that are, or are not; left out: all. */
  async assets(principal: Principal, kit_id: string, degraded?: boolean): Promise<AssetResource[]> {
    await this.#kit(principal, kit_id);
    const assets = (await this.#parts.store.assets(kit_id)).filter(
      (asset) => degraded === undefined || isDegraded(asset) === degraded,
    );
    return assets.sort(byType).map(listedAsset);
  }

  async asset(principal: Principal, kit_id: string, asset_id: string): Promise<AssetDetails> {
    return assetDetails(await this.#asset(principal, kit_id, asset_id));
  }

  /** Returns the answer of the kit's media server to the offer of a viewer, and the id by which the viewer ends it. */
  async watch(
    principal: Principal,
    kit_id: string,
    { asset_id, offer }: { readonly asset_id: string; readonly offer: string },
  ): Promise<{ readonly viewer_id: string; readonly answer: string }> {
    const { whep_url, health } = await this.#asset(principal, kit_id, asset_id);
    const { video, now } = this.#parts;
    if (!isOnline(await this.#kit(principal, kit_id), now()))
      throw new RequestProblem('unavailable', texts.kit_offline, { retry_after_s: offline_retry_s });
    if (whep_url === null || !video)
      throw new RequestProblem('not-found', health?.stream?.reason ?? texts.no_video);
    const viewer_id = randomUUID();
    const answer = await video.watch(kit_id, { id: viewer_id, asset_id, offer });
    if ('answer' in answer) return { viewer_id, answer: answer.answer };
    const again = answer.refused === 'unavailable' ? { retry_after_s: video_retry_s } : {};
    throw new RequestProblem(refused_as[answer.refused], answer.reason, again);
  }

  async leave(
    principal: Principal,
    kit_id: string,
    { asset_id, viewer_id }: { readonly asset_id: string; readonly viewer_id: string },
  ): Promise<void> {
    await this.#asset(principal, kit_id, asset_id);
    await this.#parts.video?.leave(kit_id, { id: viewer_id, asset_id, offer: null });
  }

  async createAsset(
    principal: Principal,
    kit_id: string,
    { name, type, vendor, model, metadata, parent_id }: z.output<typeof createAsset>,
  ): Promise<CreatedAsset> {
    const { store, now, changes } = this.#parts;
    await this.#kit(principal, kit_id);
    checkNewPartner(await this.#parts.store.assets(kit_id), { parent_id, metadata });
    const asset_id = randomUUID();
    const asset = await store.addPartner({
      kit_id,
      asset_id,
      asset_key: `${kit_id}:partner:${asset_id}`,
      name,
      type,
      // A text without characters is a field that was left empty.
      vendor: vendor || null,
      model: model || null,
      metadata: metadata ?? {},
      parent_id: parent_id ?? null,
      created_ms: now(),
      created_by: principal.label,
    });
    changes.publish([{ kind: 'asset', kit_id, asset_id }]);
    this.#parts.onPartner?.({ kit_id, asset_id });
    return createdAsset(kit_id, asset);
  }

  /** What the change leaves out stays as it is. */
  async changeAsset(
    principal: Principal,
    kit_id: string,
    {
      asset_id,
      ...change
    }: z.output<typeof changeAsset> & { readonly asset_id: string; readonly merges?: boolean },
  ): Promise<AssetDetails> {
    const { store, changes } = this.#parts;
    const asset = await this.#asset(principal, kit_id, asset_id);
    demandPartner(asset, 'is announced by the kit; only partner assets can be changed');
    checkMetadata(change.merges ? mergePatch(asset.metadata, change.metadata) : change.metadata);
    await store.changePartner(kit_id, asset_id, change);
    changes.publish([{ kind: 'asset', kit_id, asset_id }]);
    this.#parts.onPartner?.({ kit_id, asset_id });
    return this.asset(principal, kit_id, asset_id);
  }

  /** Assets below it become roots. */
  async removeAsset(principal: Principal, kit_id: string, asset_id: string): Promise<void> {
    const { store, changes } = this.#parts;
    const asset = await this.#asset(principal, kit_id, asset_id);
    demandPartner(asset, 'is announced by the kit; only partner assets can be removed');
    const below = (await store.assets(kit_id)).filter(({ parent_id }) => parent_id === asset_id);
    await store.removePartner(kit_id, asset_id);
    changes.publish([
      { kind: 'asset_gone', kit_id, asset_id },
      ...below.map(({ id }) => ({ kind: 'asset' as const, kit_id, asset_id: id })),
    ]);
    this.#parts.onPartner?.({ kit_id, asset_id });
  }

  /** Stores the fix as a message of the `gps` feed and as the position of the asset, and publishes both at once. */
  async pushLocation(principal: Principal, kit_id: string, { asset_id, ...fix }: Pushed): Promise<void> {
    const asset = await this.#asset(principal, kit_id, asset_id);
    demandPartner(asset, 'gets its position from the kit; locations can be pushed for partner assets only');
    await this.#push(kit_id, [{ asset_id, ...fixOf(fix, { now_ms: this.#parts.now() }) }]);
  }

  /** As `pushLocation`, for many fixes: all are stored, or none. */
  async pushLocations(principal: Principal, kit_id: string, locations: readonly Pushed[]): Promise<void> {
    await this.#kit(principal, kit_id);
    const known = new Map((await this.#parts.store.assets(kit_id)).map((asset) => [asset.id, asset]));
    const errors = locations.flatMap(({ asset_id }, at) => {
      const protocol = known.get(asset_id)?.protocol;
      if (protocol === 'partner') return [];
      const detail = protocol ? texts.no_partner : texts.no_such_asset;
      return [{ pointer: `#/locations/${at}/asset_id`, detail }];
    });
    if (errors.length > 0) {
      throw new RequestProblem('invalid-payload', texts.locations_partner_only, {
        errors,
      });
    }
    const now_ms = this.#parts.now();
    const fixes = locations.map(({ asset_id, ...fix }, at) => ({
      asset_id,
      ...fixOf(fix, { now_ms, at: `#/locations/${at}` }),
    }));
    await this.#push(kit_id, fixes);
  }

  async #push(kit_id: string, fixes: readonly PushedFix[]): Promise<void> {
    const { store, changes, now } = this.#parts;
    const landed = await store.pushFixes(kit_id, fixes, now());
    changes.publish(fixChanges(kit_id, landed));
    // Older ones, too: the other side keeps a history as well.
    for (const { asset_id, message } of landed) this.#parts.onPartner?.({ kit_id, asset_id, message });
  }

  async commands(principal: Principal, kit_id: string, asset_id: string): Promise<CommandResource[]> {
    await this.#asset(principal, kit_id, asset_id);
    return (await this.#parts.store.commands(kit_id, asset_id)).map(commandResource);
  }

  /**
   * Creates the task and sends it to the kit. An offline kit or asset is no reason to reject it here: the kit reports that
   * in the `result.error` of the task, or executes it when it reconnects in time.
   */
  async sendCommand(
    principal: Principal,
    kit_id: string,
    { asset_id, command_name, payload }: Pick<TaskOrder, 'asset_id' | 'command_name' | 'payload'>,
  ): Promise<TaskResource> {
    const { store, changes, now } = this.#parts;
    const asset = await this.#asset(principal, kit_id, asset_id);
    const commands = await store.commands(kit_id, asset_id);
    const command = commands.find(({ name }) => name === command_name);
    if (!command) {
      const known = commands.map(({ name }) => name).join(', ') || 'none';
      throw new RequestProblem('not-found', texts.no_command(asset.name, command_name, known));
    }
    this.#noteUnreadable(kit_id, command);
    const errors = payloadFaults(command.input_schema, payload);
    if (errors.length > 0) {
      throw new RequestProblem('invalid-payload', texts.payload_mismatch, { errors });
    }
    const created_ms = now();
    const order: TaskOrder = {
      kit_id,
      task_id: randomUUID(),
      asset_id,
      command_name,
      payload,
      requested_by: principal.user_id,
      requested_by_name: principal.label,
      created_ms,
      due_ms: created_ms + (command.timeout_ms ?? answer_default_ms) + report_grace_ms,
    };
    const task = await store.addTask(order);
    changes.publish([{ kind: 'task', kit_id, task }]);
    void this.#dispatch(order);
    return taskResource(task);
  }

  async task(principal: Principal, kit_id: string, task_id: string): Promise<TaskResource> {
    return taskResource(await this.#task(principal, kit_id, task_id));
  }

  /** Returns one page, and where the next one begins unless this is the last. */
  async tasks(principal: Principal, kit_id: string, query: TaskQuery): Promise<z.output<typeof taskList>> {
    await this.#kit(principal, kit_id);
    const { tasks, hasMore } = await taskPage(this.#parts.store, kit_id, query);
    const last = tasks.at(-1);
    return { tasks: tasks.map(taskResource), ...(last && hasMore && { next_cursor: cursorAfter(last) }) };
  }

  async cancelTask(principal: Principal, kit_id: string, task_id: string): Promise<TaskResource> {
    const task = await this.#task(principal, kit_id, task_id);
    if (task.status === 'completed' || task.status === 'failed') {
      throw new RequestProblem('conflict', texts.task_over(task.status));
    }
    try {
      await this.#parts.dispatcher.cancel(kit_id, task_id);
    } catch (error) {
      throw new RequestProblem('unavailable', texts.cancel_not_sent(messageOf(error)), {
        retry_after_s: 5,
      });
    }
    return taskResource((await this.#endUnseen(kit_id, task)) ?? task);
  }

  /**
   * Fails a cancelled task that an offline kit has not reported: the kit would not answer. The cancellation waits at the
   * broker behind the dispatch, and a report of the kit still counts.
   */
  async #endUnseen(kit_id: string, { task_id, revision }: StoredTask): Promise<StoredTask | undefined> {
    const { store, changes, now } = this.#parts;
    const kit = await store.kit(kit_id);
    if (revision > 0 || (kit && isOnline(kit, now()))) return undefined;
    const task = await store.failTask(kit_id, task_id, 'cancelled while the kit was offline', now());
    if (task) {
      changes.publish([{ kind: 'task', kit_id, task }]);
      this.#parts.onFailed?.();
    }
    return task;
  }

  /** The newest message of each feed. */
  async feeds(principal: Principal, kit_id: string, asset_id: string): Promise<AssetFeeds> {
    await this.#asset(principal, kit_id, asset_id);
    const feeds = await this.#parts.store.feeds(kit_id, asset_id);
    return Object.fromEntries(feeds.map(({ feed, data }) => [feed, { ...data }]));
  }

  /** Logs an unsupported schema once per command; its id covers kit, asset and name. */
  #noteUnreadable(kit_id: string, { id, name, input_schema }: CommandDefinition): void {
    if (isReadable(input_schema) || this.#unreadable.has(id)) return;
    if (this.#unreadable.size >= unreadable_max) this.#unreadable.clear();
    this.#unreadable.add(id);
    const sentence = 'command input_schema is not supported; only the kit checks its payloads';
    this.#parts.log.warn({ kit_id, command: name }, sentence);
  }

  /** Sends the task; a task that cannot reach the kit fails. There is no retry, since its delay would be unpredictable. */
  async #dispatch(order: TaskOrder): Promise<void> {
    const { store, dispatcher, changes, now } = this.#parts;
    try {
      await dispatcher.dispatch(order);
    } catch (error) {
      const { kit_id, task_id } = order;
      const task = await store
        .failTask(kit_id, task_id, `not sent to the kit: ${messageOf(error)}`, now())
        .catch(() => undefined);
      if (!task) return;
      changes.publish([{ kind: 'task', kit_id, task }]);
      this.#parts.onFailed?.();
    }
  }

  /**
   * Returns the kit; throws `not-found` also for a kit that the key may not read. A kit that the key names exists before it
   * reports anything.
   */
  async #kit(principal: Principal, kit_id: string): Promise<StoredKit> {
    const isNamed = principal.kits !== '*' && maySee(principal, kit_id);
    const reported = maySee(principal, kit_id) ? await this.#parts.store.kit(kit_id) : undefined;
    const kit = reported ?? (isNamed ? unreportedKit(kit_id) : undefined);
    if (!kit) throw new RequestProblem('not-found', texts.no_kit(kit_id));
    return kit;
  }

  async #asset(principal: Principal, kit_id: string, asset_id: string): Promise<StoredAsset> {
    await this.#kit(principal, kit_id);
    const asset = await this.#parts.store.asset(kit_id, asset_id);
    if (!asset) throw new RequestProblem('not-found', texts.no_asset(asset_id));
    return asset;
  }

  async #task(principal: Principal, kit_id: string, task_id: string): Promise<StoredTask> {
    await this.#kit(principal, kit_id);
    const task = await this.#parts.store.task(kit_id, task_id);
    if (!task) throw new RequestProblem('not-found', texts.no_task(task_id));
    return task;
  }
}

/** Checks the size of the metadata, the parent and the number of partner assets; `assets` are those of the kit. */
export function checkNewPartner(
  assets: readonly StoredAsset[],
  { parent_id, metadata }: Pick<z.output<typeof createAsset>, 'parent_id' | 'metadata'>,
): void {
  checkMetadata(metadata);
  if (typeof parent_id === 'string' && !assets.some(({ id }) => id === parent_id)) {
    throw new RequestProblem('invalid-payload', texts.no_parent, {
      errors: [{ pointer: '#/parent_id', detail: texts.no_such_asset }],
    });
  }
  if (assets.filter(({ protocol }) => protocol === 'partner').length >= partner_assets_max) {
    throw new RequestProblem('conflict', texts.partners_max(partner_assets_max));
  }
}

/** Checks the size of the metadata. */
export function checkMetadata(metadata: JsonObject | null | undefined): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata ?? {}));
  if (bytes <= metadata_bytes_max) return;
  const detail = `${bytes} bytes; at most ${metadata_bytes_max}`;
  throw new RequestProblem('invalid-payload', texts.metadata_too_large, {
    errors: [{ pointer: '#/metadata', detail }],
  });
}

/** How old a pushed fix may be. */
const fix_age_ms_max = 86_400_000;
/** How far the clock of a partner may be ahead. */
const fix_ahead_ms_max = 60_000;

/** The fix as it is stored. A time that is ahead counts as now, so that it blocks no later fix. `at`: its place in the body. */
export function fixOf(
  { lat, lon, alt_m, bearing, speed_mps, timestamp }: z.output<typeof pushLocation>,
  { now_ms, at = '#' }: { readonly now_ms: number; readonly at?: string },
): Omit<PushedFix, 'asset_id'> {
  const fix_ms = typeof timestamp === 'string' ? Date.parse(timestamp) : now_ms;
  if (fix_ms > now_ms + fix_ahead_ms_max || fix_ms < now_ms - fix_age_ms_max) {
    const detail = `here it is ${new Date(now_ms).toISOString()}; at most ${fix_age_ms_max / 3_600_000} h before and ${fix_ahead_ms_max / 1_000} s after that`;
    throw new RequestProblem('invalid-payload', texts.fix_time, {
      errors: [{ pointer: `${at}/timestamp`, detail }],
    });
  }
  const fix = { lat, lon, alt_m: alt_m ?? null, bearing: bearing ?? null, speed_mps: speed_mps ?? null };
  return { fix, time_ms: Math.min(now_ms, fix_ms) };
}

/** Throws `conflict` when the asset is one of the kit. */
export function demandPartner(asset: StoredAsset, why: string): void {
  if (asset.protocol !== 'partner') throw new RequestProblem('conflict', `${asset.name} ${why}`);
}
