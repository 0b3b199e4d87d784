/** Positions of kit and assets, for list, detail and map alike. */
import { feedFreshness, freshness, isAssetReachable, partFreshness, place_old_ms } from './age.ts';
import { fixOf, numberOf } from './world.ts';
import type { Freshness, LiveAsset, Now } from '../types.d.ts';

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
