/** What `status` shows of an asset. */
import type { Asset } from './asset.ts';
import type { FeedView } from '../feed-gate.ts';

/** An asset as status shows it. */
export interface AssetView {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly type: string;
  readonly driver: string;
  readonly status: 'online' | 'offline';
  readonly reason: string | null;
  readonly last_seen_at: string;
  /** Why its stream is withheld. */
  readonly stream_fault: string | null;
  readonly feeds: Readonly<Record<string, FeedView>>;
}

export function viewOf(asset: Asset): AssetView {
  const { id, asset_key, name, type, driver, status, status_reason, last_seen_at } = asset.announcement();
  const feeds = asset.gate?.view() ?? {};
  const { stream_fault } = asset;
  const reason = status_reason;
  return { id, key: asset_key, name, type, driver, status, reason, last_seen_at, stream_fault, feeds };
}
