/** Partner assets and their fixes in the tables. */
import type { JsonObject } from '../../contract/json.ts';
import type { Queries, Row, SqlValue } from './sql/database.ts';
import type { Change, LandedFix, PartnerAsset, PushedFix, StoredAsset } from './store.ts';

/** The feed of a partner asset. */
const feed = 'gps';

/** Stores a partner asset in place of what was known of it. */
export async function putAsset(
  queries: Queries,
  kit_id: string,
  asset: StoredAsset,
  created_ms: number,
): Promise<void> {
  await queries.all(
    `INSERT INTO assets (kit_id, asset_id, data, partner, time_ms, epoch, seq, unsynced) VALUES (?, ?, ?, 1, ?, 0, 0, 0)
     ON CONFLICT (kit_id, asset_id) DO UPDATE SET data = excluded.data, gone = 0, partner = 1`,
    kit_id,
    asset.id,
    JSON.stringify(asset),
    created_ms,
  );
}

export async function deleteAsset(queries: Queries, kit_id: string, asset_id: string): Promise<boolean> {
  const gone = await queries.all(
    'DELETE FROM assets WHERE kit_id = ? AND asset_id = ? AND partner = 1 RETURNING asset_id',
    kit_id,
    asset_id,
  );
  for (const table of ['feeds', 'partner_fixes']) {
    await queries.all(`DELETE FROM ${table} WHERE kit_id = ? AND asset_id = ?`, kit_id, asset_id);
  }
  return gone.length > 0;
}

/** Inserts a fix, or replaces the existing one under the condition that follows. */
export const insert_fix = `INSERT INTO partner_fixes (kit_id, asset_id, data, alt_m, time_ms) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (kit_id, asset_id) DO UPDATE SET data = excluded.data,
    alt_m = COALESCE(excluded.alt_m, partner_fixes.alt_m), time_ms = excluded.time_ms`;

interface FixRow {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly data: JsonObject;
  readonly alt_m: number | null;
  readonly time_ms: number;
}

/** The values of `insert_fix`. */
export function fixValues({ kit_id, asset_id, data, alt_m, time_ms }: FixRow): readonly SqlValue[] {
  return [kit_id, asset_id, JSON.stringify(data), alt_m, time_ms];
}

/**
 * Stores the fix as the newest message of the asset's `gps` feed, unless a newer one is there. The position of the asset is
 * read from it; a fix without an altitude keeps the known one. A stored time that is still to come, since the clock was set
 * back, blocks nothing.
 */
export async function putFix(
  queries: Queries,
  kit_id: string,
  { asset_id, fix, time_ms = Infinity }: PushedFix,
  now_ms: number,
): Promise<LandedFix> {
  const fix_ms = Math.min(time_ms, now_ms);
  const data = { ...fix, source: 'api', timestamp: new Date(fix_ms).toISOString() };
  const row = { kit_id, asset_id, data, alt_m: fix.alt_m, time_ms: fix_ms };
  const inserted = await queries.all(
    `${insert_fix} WHERE partner_fixes.time_ms <= excluded.time_ms RETURNING asset_id`,
    ...fixValues(row),
  );
  const stored = inserted.length > 0 ? inserted : await replaceFuture(queries, row, now_ms);
  return { asset_id, message: { feed, time_ms: fix_ms, data }, isNewest: stored.length > 0 };
}

/** Replaces a stored fix whose time is still to come. */
async function replaceFuture(
  queries: Queries,
  { kit_id, asset_id, data, alt_m, time_ms }: FixRow,
  now_ms: number,
): Promise<readonly Row[]> {
  return queries.all(
    `UPDATE partner_fixes SET data = ?, alt_m = COALESCE(CAST(? AS DOUBLE PRECISION), alt_m), time_ms = ?
     WHERE kit_id = ? AND asset_id = ? AND time_ms > ? RETURNING asset_id`,
    JSON.stringify(data),
    alt_m,
    time_ms,
    kit_id,
    asset_id,
    now_ms,
  );
}

/** The changes that fixes bring: each message that was the newest, and each asset that moved once. */
export function fixChanges(kit_id: string, landed: readonly LandedFix[]): readonly Change[] {
  const newest = landed.filter(({ isNewest }) => isNewest);
  const moved = new Set(newest.map(({ asset_id }) => asset_id));
  return [
    ...newest.map(({ asset_id, message }) => ({ kind: 'feed' as const, kit_id, asset_id, message })),
    ...Array.from(moved, (asset_id) => ({ kind: 'asset' as const, kit_id, asset_id })),
  ];
}

export function partnerAsset(partner: Omit<PartnerAsset, 'kit_id' | 'created_by'>): StoredAsset {
  const { asset_id, asset_key, name, type, vendor, model, metadata, parent_id, created_ms } = partner;
  return {
    id: asset_id,
    asset_key,
    name,
    type,
    vendor,
    model,
    metadata,
    parent_id,
    firmware: null,
    protocol: 'partner',
    status: 'online',
    status_reason: null,
    last_seen_at: new Date(created_ms).toISOString(),
    lat: null,
    lon: null,
    alt_m: null,
    whep_url: null,
    feeds: [feed],
  };
}
