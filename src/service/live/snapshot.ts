/** Builds the frames of a socket from the store: the whole kit first, then each change. */
import type { z } from 'zod';
import type { CommandResource } from '../api/resources.ts';
import type { serverFrame } from '../api/frames.ts';
import type { Change, Store, StoredAsset, StoredFeed, StoredKit } from '../store/store.ts';
import {
  assetResource,
  byType,
  commandResource,
  iso,
  queueResource,
  taskResource,
  telemetrySnapshot,
  unreportedKit,
} from '../api/views.ts';

type Frames = z.output<typeof serverFrame>;
/** A frame without the stamp of its socket. */
export type FrameBody = {
  [K in Frames['type']]: Omit<Extract<Frames, { type: K }>, 'seq' | 'time'>;
}[Frames['type']];

/** Tasks in a snapshot. */
const tasks_shown = 50;

/** Builds a snapshot; `wants` selects the subscribed assets. */
export async function snapshotOf(
  store: Store,
  kit_id: string,
  wants: (asset_id: string) => boolean,
): Promise<FrameBody> {
  const kit = (await store.kit(kit_id)) ?? unreportedKit(kit_id);
  const assets = (await store.assets(kit_id)).filter(({ id }) => wants(id)).sort(byType);
  const feeds = new Map<string, Readonly<Record<string, ReturnType<typeof messageOf>>>>();
  const commands = new Map<string, CommandResource[]>();
  for (const { id } of assets) {
    const ofAsset = await store.feeds(kit_id, id);
    feeds.set(id, Object.fromEntries(ofAsset.map((feed) => [feed.feed, messageOf(feed)])));
    commands.set(id, (await store.commands(kit_id, id)).map(commandResource));
  }
  const tasks = await store.tasks(kit_id, { limit: tasks_shown });
  return {
    type: 'snapshot',
    kit: kitNow(kit),
    queue: queueResource(kit, Date.now()),
    assets: assets.map(liveAsset),
    feeds: Object.fromEntries(feeds),
    commands: Object.fromEntries(commands),
    tasks: tasks.map(taskResource),
  };
}

/** Returns the frames of a change. None when the thing was removed meanwhile, or its asset is not subscribed. */
export async function framesOf(
  store: Store,
  change: Change,
  wants: (asset_id: string) => boolean,
): Promise<readonly FrameBody[]> {
  const { kit_id } = change;
  if (change.kind === 'kit') {
    const kit = await store.kit(kit_id);
    if (!kit) return [];
    return [
      { type: 'kit', kit: kitNow(kit) },
      { type: 'queue', queue: queueResource(kit, Date.now()) },
    ];
  }
  if (change.kind === 'task') return [{ type: 'task', task: taskResource(change.task) }];
  const { asset_id } = change;
  if (!wants(asset_id)) return [];
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
