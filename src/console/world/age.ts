/** Computes ages and decides which values are old: one rule for list, detail and map. */
import { detection_feeds } from './detections.ts';
import type { FeedMessage, Freshness, LiveAsset, Now, World } from '../types.d.ts';

/** A kit repeats all telemetry every 300 s and sends changes in between: a value not repeated by then is old. */
export const kit_old_ms = 330_000;
/** A drone or vehicle without a fix may have moved by then. */
export const place_old_ms = 180_000;
/** A feed is old after three of its usual intervals, and until those are known after this. */
export const feed_old_ms = 30_000;
const feed_old_min_ms = 6_000;
const feed_old_max_ms = 300_000;

/** Feeds that report changes: the last one stays valid while the asset is reachable. */
const edges = new Set([...detection_feeds, 'alarm', 'status', 'asset_status', 'link_status']);

/**
 * @param time ISO 8601; null: not known
 * @param isReachable false: the source of the value is not reachable, so the value may be outdated
 */
export function freshness(
  time: string | null | undefined,
  limit_ms: number,
  now: Now,
  isReachable: boolean,
): Freshness {
  const at_ms = time ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(at_ms)) return { age_ms: null, isOld: true };
  const age_ms = Math.max(0, now.time_ms - at_ms);
  return { age_ms, isOld: !isReachable || age_ms > limit_ms };
}

/** Returns whether messages of the kit reach this page. */
export function isKitReachable({ link, world }: Now): boolean {
  return link.state === 'live' && world.kit?.online === true;
}

/** Returns whether messages of the asset reach this page. Partner assets do not need the kit. */
export function isAssetReachable(asset: LiveAsset, now: Now): boolean {
  if (asset.status !== 'online') return false;
  return asset.protocol === 'partner' ? now.link.state === 'live' : isKitReachable(now);
}

/** Returns the state of an asset; "was online" when the page cannot confirm it. */
export function assetState(asset: LiveAsset, now: Now): 'online' | 'offline' | 'was online' {
  if (asset.status === 'offline') return 'offline';
  return isAssetReachable(asset, now) ? 'online' : 'was online';
}

/** What the asset fails to deliver while it is online, in the order in which it is shown. */
export function missingOf({ status, health = {} }: LiveAsset) {
  if (status !== 'online') return [];
  return health_items.flatMap((item) => {
    const { state, reason = null, next_try_at = null } = health[item] ?? {};
    return state === 'fails' ? [{ item, reason, next_try_at }] : [];
  });
}
export const health_items = ['state', 'events', 'stream', 'still', 'commands'] as const;

export function feedFreshness(asset: LiveAsset, feed: string, now: Now): Freshness {
  const message = now.world.feeds.get(asset.id)?.[feed];
  return freshness(message?.time, feedLimit(now.world, asset.id, feed), now, isAssetReachable(asset, now));
}

function feedLimit(world: World, asset_id: string, feed: string): number {
  if (edges.has(feed)) return Number.POSITIVE_INFINITY;
  const period_ms = world.periods.get(`${asset_id} ${feed}`);
  if (period_ms === undefined) return feed_old_ms;
  return Math.min(feed_old_max_ms, Math.max(feed_old_min_ms, 3 * period_ms));
}

/** A part of the kit's telemetry, by its name. */
export function partFreshness(part: string, now: Now): Freshness {
  return freshness(now.world.kit?.times[part], partLimit(part, now.world), now, isKitReachable(now));
}

function partLimit(part: string, { kit }: World) {
  if (part !== 'location') return kit_old_ms;
  if (kit?.location?.source === 'manual') return Number.POSITIVE_INFINITY;
  return kit?.location?.stale ? 0 : kit_old_ms;
}

/** Returns when the last message of an asset was observed. */
export function lastMessageTime(
  asset: LiveAsset,
  feeds: Readonly<Record<string, FeedMessage>> | undefined,
): string {
  let newest = asset.last_seen_at;
  for (const { time } of Object.values(feeds ?? {})) if (Date.parse(time) > Date.parse(newest)) newest = time;
  return newest;
}

/** A kit with a broker reports its queue when it connects and with each state report; an older report counts as old. */
const queue_limit_ms = 60_000;

/** The age of the kit's report on its queue. */
export function queueFreshness(now: Now): Freshness {
  const { queue } = now.world;
  return freshness(queue?.as_of, queue_limit_ms, now, isKitReachable(now) && queue?.online === true);
}
