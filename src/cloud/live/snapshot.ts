/** Builds the frames of a socket from the store: the whole kit first, then each change. */
import type { z } from 'zod';
import type { CommandResource } from '../api/resources.ts';
import type { serverFrame } from '../api/frames.ts';
import type { Change, StoredAsset, StoredFeed, StoredKit } from '../stored/stored.ts';
import { lasting_states } from '../api/alarm-resources.ts';
import {
  assetResource,
  byType,
  commandResource,
  iso,
  queueResource,
  taskResource,
  telemetrySnapshot,
  unreportedKit,
  alarmResource,
} from '../api/views.ts';
import { fileResourceOf } from '../files/file-resource.ts';
import type { Store } from '../store/sql-store.ts';

type Frames = z.output<typeof serverFrame>;
/** A frame without the stamp of its socket. */
export type FrameBody = {
  [K in Frames['type']]: Omit<Extract<Frames, { type: K }>, 'seq' | 'time'>;
}[Frames['type']];

const tasks_shown = 50;
const alarms_shown = 50;
/** Bytes of JSON of a snapshot: of a client that stops reading, the service holds all of it. A kit may send a hundred times as much. */
const snapshot_bytes_max = 1024 * 1024;
/** Bytes of feeds that are sent at once of an asset for which the snapshot had no room. */
const late_bytes_max = 128 * 1024;

/** What a snapshot had no room for. It follows in separate frames, each sent once a slow reader has read the one before. */
export interface Late {
  readonly asset_id: string;
  /** This part of the asset and those after it. */
  readonly from: 'asset' | 'commands' | 'feeds';
  /** Only feeds behind this name. */
  readonly after?: string;
}

/** Counts what still fits. */
class Room {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  get isLeft(): boolean {
    return this.#left > 0;
  }

  take<T>(value: T): T {
    this.#left -= Buffer.byteLength(JSON.stringify(value));
    return value;
  }
}

/** Builds a snapshot, and returns what had no room in it; `wants` selects the subscribed assets. */
export async function snapshotOf(
  store: Store,
  kit_id: string,
  wants: (asset_id: string) => boolean,
): Promise<{ readonly frame: FrameBody; readonly late: readonly Late[] }> {
  const room = new Room(snapshot_bytes_max);
  const kit = (await store.kit(kit_id)) ?? unreportedKit(kit_id);
  const now = room.take(kitNow(kit));
  const tasks = [];
  for (const task of await store.tasks(kit_id, { limit: tasks_shown }))
    if (room.isLeft) tasks.push(room.take(taskResource(task)));
  const query = { kits: [kit_id], states: lasting_states, limit: alarms_shown, now_ms: Date.now() };
  const found = (await store.alarms(query)).filter((alarm) => room.isLeft && room.take(alarm));
  const assets = [];
  const feeds = new Map<string, Readonly<Record<string, ReturnType<typeof messageOf>>>>();
  const commands = new Map<string, CommandResource[]>();
  const late: Late[] = [];
  for (const asset of (await store.assets(kit_id)).filter(({ id }) => wants(id)).sort(byType)) {
    const { id } = asset;
    if (!room.isLeft) {
      late.push({ asset_id: id, from: 'asset' });
      continue;
    }
    assets.push(room.take(liveAsset(asset)));
    commands.set(id, room.take((await store.commands(kit_id, id)).map(commandResource)));
    const { some, rest } = await feedsOf(store, kit_id, { asset_id: id, room });
    feeds.set(id, Object.fromEntries(some));
    if (rest) late.push(rest);
  }
  const frame: FrameBody = {
    type: 'snapshot',
    kit: now,
    queue: queueResource(kit, Date.now()),
    assets,
    feeds: Object.fromEntries(feeds),
    commands: Object.fromEntries(commands),
    tasks,
    alarms: found.map((alarm) => alarmResource(alarm, Date.now())),
  };
  return { frame, late };
}

/** Returns the frames of something that a snapshot had no room for, and what is left of it. */
export async function lateFramesOf(
  store: Store,
  kit_id: string,
  { asset_id, from, after }: Late,
): Promise<{ readonly frames: readonly FrameBody[]; readonly rest?: Late | undefined }> {
  if (from === 'asset') {
    const frames = await framesOf(store, { kind: 'asset', kit_id, asset_id }, () => true);
    return { frames, ...(frames.length > 0 && { rest: { asset_id, from: 'commands' } }) };
  }
  if (from === 'commands') {
    const frames = await framesOf(store, { kind: 'commands', kit_id, asset_id }, () => true);
    return { frames, rest: { asset_id, from: 'feeds' } };
  }
  const room = new Room(late_bytes_max);
  const { some, rest } = await feedsOf(store, kit_id, { asset_id, after, room });
  return { frames: some.map(([feed, message]) => ({ type: 'feed', asset_id, feed, message })), rest };
}

interface FeedsWanted {
  readonly asset_id: string;
  readonly after?: string | undefined;
  readonly room: Room;
}

/** The feeds of an asset by name, as many as there is room for, and where to continue. */
async function feedsOf(store: Store, kit_id: string, { asset_id, after = '', room }: FeedsWanted) {
  const all = (await store.feeds(kit_id, asset_id))
    .filter(({ feed }) => feed > after)
    .sort((a, b) => (a.feed < b.feed ? -1 : 1));
  const some: (readonly [feed: string, message: ReturnType<typeof messageOf>])[] = [];
  for (const each of all) {
    const rest: Late = { asset_id, from: 'feeds', after: some.at(-1)?.[0] ?? after };
    if (!room.isLeft) return { some, rest };
    some.push([each.feed, room.take(messageOf(each))]);
  }
  return { some, rest: undefined };
}

/** Returns the frames of a change. None when the thing was removed meanwhile, or its asset is not subscribed. */
export async function framesOf(
  store: Store,
  change: Change,
  wants: (asset_id: string) => boolean,
): Promise<readonly FrameBody[]> {
  if (change.kind === 'kit') {
    const kit = await store.kit(change.kit_id);
    if (!kit) return [];
    return [
      { type: 'kit', kit: kitNow(kit) },
      { type: 'queue', queue: queueResource(kit, Date.now()) },
    ];
  }
  if (change.kind === 'kit_gone') return [{ type: 'kit_gone' }];
  if (change.kind === 'task') return [{ type: 'task', task: taskResource(change.task) }];
  if (change.kind === 'alarm') return [{ type: 'alarm', alarm: alarmResource(change.alarm, Date.now()) }];
  if (change.kind === 'file') return fileFrames(store, change, wants);
  return wants(change.asset_id) ? assetFrames(store, change) : [];
}

async function fileFrames(
  store: Store,
  change: Extract<Change, { kind: 'file' }>,
  wants: (asset_id: string) => boolean,
): Promise<readonly FrameBody[]> {
  const file = await store.file(change);
  const isWanted = file && (file.data.asset_id === null || wants(file.data.asset_id));
  return isWanted ? [{ type: 'file', file: fileResourceOf(file) }] : [];
}

async function assetFrames(
  store: Store,
  change: Extract<Change, { asset_id: string }>,
): Promise<readonly FrameBody[]> {
  const { kit_id, asset_id } = change;
  switch (change.kind) {
    case 'asset': {
      const asset = await store.asset(kit_id, asset_id);
      return asset ? [{ type: 'asset', asset: liveAsset(asset) }] : [];
    }
    case 'commands':
      return [
        {
          type: 'commands',
          asset_id,
          commands: (await store.commands(kit_id, asset_id)).map(commandResource),
        },
      ];
    case 'feed':
      return [{ type: 'feed', asset_id, feed: change.message.feed, message: messageOf(change.message) }];
    case 'asset_gone':
    default:
      return [{ type: 'asset_gone', asset_id }];
  }
}

/** Returns the key of the changed thing; of two changes with the same key the newer one replaces the older one. */
export function keyOf(change: Change): string {
  switch (change.kind) {
    case 'kit':
      return 'kit';
    case 'task':
      return `task ${change.task.task_id}`;
    case 'alarm':
      return `alarm ${change.alarm.alarm_id}`;
    case 'kit_gone':
      return change.kind;
    case 'file':
      return `file ${change.file_id}`;
    case 'feed':
      return `feed ${change.asset_id} ${change.message.feed}`;
    case 'commands':
      return `commands ${change.asset_id}`;
    case 'asset':
    case 'asset_gone':
    default:
      return `asset ${change.asset_id}`;
  }
}

function kitNow(kit: StoredKit) {
  const times: Record<string, string> = {};
  for (const [part, { time_ms }] of Object.entries(kit.parts)) times[part] = iso(time_ms);
  return {
    ...telemetrySnapshot(kit, Date.now()),
    last_seen: kit.heard_ms === null ? null : iso(kit.heard_ms),
    times,
  };
}

function liveAsset(asset: StoredAsset) {
  const { alt_m, status_reason, feeds } = asset;
  return { ...assetResource(asset), alt_m, status_reason, feed_names: [...feeds] };
}

function messageOf({ time_ms, data }: StoredFeed) {
  return { time: iso(time_ms), data };
}
