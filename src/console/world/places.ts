/** Positions of kit and assets, for list, detail and map alike; where a drone calls home, where it may be sent, and whether it has crossed its fence. */
import { feedFreshness, freshness, isAssetReachable, partFreshness, place_old_ms } from './age.ts';
import { fixOf, numberOf, fieldOf } from './world.ts';
import type { Freshness, LiveAsset, Now, View } from '../types.d.ts';
import type { Place } from './geo.ts';

export type KnownPlace = { readonly lat: number; readonly lon: number } & Freshness;

export function placeOfKit(now: Now): KnownPlace | undefined {
  const location = now.world.kit?.location;
  if (!location) return undefined;
  return { lat: location.latitude, lon: location.longitude, ...partFreshness('location', now) };
}

/** Returns the newest fix of the asset; else its announced position, with the age of its last message. */
export function placeOfAsset(asset: LiveAsset, now: Now): KnownPlace | undefined {
  const fix = fixOf(now.world.feeds.get(asset.id)?.['gps']);
  if (fix) return { lat: fix.lat, lon: fix.lon, ...feedFreshness(asset, 'gps', now) };
  if (typeof asset.lat !== 'number' || typeof asset.lon !== 'number') return undefined;
  const isMoving = asset.type === 'drone' || asset.type === 'vehicle';
  const limit_ms = isMoving ? place_old_ms : Number.POSITIVE_INFINITY;
  return {
    lat: asset.lat,
    lon: asset.lon,
    ...freshness(asset.last_seen_at, limit_ms, now, isAssetReachable(asset, now)),
  };
}

/** Returns the heading in degrees from true north; undefined when it is old. */
export function headingOf(asset: LiveAsset, now: Now): number | undefined {
  if (feedFreshness(asset, 'gps', now).isOld) return undefined;
  const gps = now.world.feeds.get(asset.id)?.['gps'];
  return numberOf(gps, 'heading') ?? numberOf(gps, 'bearing');
}

export function homeOf(asset_id: string, { world }: Now): Place | undefined {
  const message = world.feeds.get(asset_id)?.['home'];
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  return lat === undefined || lon === undefined ? undefined : { lat, lon };
}

/**
 * Which limit of its fence the drone has crossed, in the words of the contract; '' when it does not report which. Undefined: none, or
 * not reported.
 */
export function breachOf(asset_id: string, { world }: Now): string | undefined {
  const message = world.feeds.get(asset_id)?.['fence'];
  if (fieldOf(message, 'breached') !== true) return undefined;
  const type = fieldOf(message, 'breach_type');
  return typeof type === 'string' && type !== 'none' ? type : '';
}

export const fly_command = 'goto_waypoint';

/** The target that is set for this drone; it goes when the drone's position turns old. */
export function targetOf(asset: LiveAsset, view: View) {
  const { target } = view.choices;
  if (!target || target.asset_id !== asset.id) return undefined;
  const from = placeOfAsset(asset, view);
  return from && !from.isOld ? { target, from } : undefined;
}

/** Whether a tap on the map of this asset sets a target. */
export function canFly(asset: LiveAsset, view: View) {
  const commands = view.world.commands.get(asset.id) ?? [];
  if (view.choices.moment_ms !== null) return false;
  return commands.some(({ name }) => name === fly_command) && placeOfAsset(asset, view)?.isOld === false;
}
