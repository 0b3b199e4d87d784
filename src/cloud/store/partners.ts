/**
 * Partner assets and their fixes. Those of a kit are kept the same at its own service and at the cloud's (`decisions/0027`): a removal is
 * final, otherwise the greater revision counts, and of equal ones the kit's.
 */
import { z } from 'zod';
import {
  type PartnerChange,
  partnerFix,
  type PartnerFixMessage,
  type PartnerRecord,
} from '../../contract/partners.ts';
import { landFixes } from '../history/landing.ts';
import { mergePatch } from '../merge-patch.ts';
import { lockKits } from '../stored/commit-rows.ts';
import { assetOf, pushedOf } from '../stored/rows.ts';
import { clause, isEach, raw, sql, type Queries, type Row } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';
import type {
  Change,
  LandedFix,
  PartnerAsset,
  PartnerEdit,
  PartnerState,
  PushedFix,
  StoreContext,
  StoredAsset,
  StoredFeed,
  FeedArrival,
} from '../stored/stored.ts';

/** Partner assets of one kit. */
export const partner_assets_max = 256;
/** Removals of one kit that are remembered, so that the other side learns them; the oldest are forgotten. */
const removals_max = 256;

/** The feed of a partner asset. */
const feed = 'gps';

/** Which side a change comes from. */
type Side = 'kit' | 'cloud';

export function partnerStore({ database, announce, keepsHistory }: StoreContext) {
  return {
    async addPartner(partner: PartnerAsset): Promise<StoredAsset> {
      const { kit_id, asset_id, created_ms, created_by } = partner;
      const asset = partnerAsset(partner);
      await database.transaction(async (queries) => {
        await putAsset(queries, kit_id, asset, created_ms);
        await noteRevision(queries, kit_id, asset_id, { revision: 1, created_by });
      });
      await announce(database, [{ kind: 'asset', kit_id, asset_id }]);
      return asset;
    },

    /** Changes a partner asset; false: there is none with this id. */
    async changePartner(kit_id: string, asset_id: string, change: PartnerEdit): Promise<boolean> {
      const isChanged = await database.transaction(async (queries) =>
        editPartner(queries, kit_id, asset_id, change),
      );
      if (isChanged) await announce(database, [{ kind: 'asset', kit_id, asset_id }]);
      return isChanged;
    },

    async removePartner(kit_id: string, asset_id: string): Promise<boolean> {
      const isGone = await database.transaction(async (queries) => {
        const asset = await sql(queries)`SELECT 1 AS here FROM assets
          WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND partner = 1`;
        return asset.length > 0 && noteRemoval(queries, kit_id, asset_id, { isKnownToPeer: false });
      });
      if (isGone) await announce(database, [{ kind: 'asset_gone', kit_id, asset_id }]);
      return isGone;
    },

    /** Each fix as a message of the `gps` feed and, unless a newer one is known, as the asset's position, in this order; all or none. */
    async pushFixes(
      kit_id: string,
      fixes: readonly PushedFix[],
      now_ms: number,
    ): Promise<readonly LandedFix[]> {
      const landed = await database.transaction(async (queries) => {
        const stored: LandedFix[] = [];
        // An erasure locks the kit as well: it ends before, or sees these fixes.
        await lockKits(queries, [kit_id]);
        for (const fix of fixes) stored.push(await putFix(queries, kit_id, fix, now_ms));
        if (keepsHistory) await landFixes(queries, { kit_id, fixes: stored, now_ms });
        return stored;
      });
      await announce(database, fixChanges(kit_id, landed));
      return landed;
    },

    /** All partner assets of the kit, and the removed ones that the other side may not know. */
    partners: async (kit_id: string) => readPartners(database, kit_id),

    /** Applies what the cloud has of a partner asset. Rejects with the reason when it cannot be taken. */
    async takePartner(
      kit_id: string,
      asset_id: string,
      change: PartnerChange,
      now_ms: number,
    ): Promise<readonly Change[]> {
      const changes = await database.transaction(async (queries) => {
        const taken = await takePartner(queries, { kit_id, asset_id, change, from: 'cloud', now_ms });
        if ('fault' in taken) throw new Error(taken.fault);
        return taken;
      });
      await announce(database, changes);
      return changes;
    },

    /** The kit has the fix of this time. */
    async partnerFixSent(kit_id: string, asset_id: string, fix_ms: number): Promise<void> {
      await noteFixSent(database, kit_id, asset_id, fix_ms);
    },
  };
}

const selected = (
  kit_id: string,
) => clause`SELECT known.asset_id, assets.data, COALESCE(sync.revision, 1) AS revision, COALESCE(sync.gone, 0) AS gone,
    sync.peer_revision, COALESCE(sync.fix_sent_ms, 0) AS fix_sent_ms, sync.created_by, assets.time_ms AS created_ms,
    fixes.data AS fix, fixes.time_ms AS fix_ms
  FROM (SELECT kit_id, asset_id FROM assets WHERE kit_id = ${kit_id} AND partner = 1
        UNION SELECT kit_id, asset_id FROM partner_sync WHERE kit_id = ${kit_id}) AS known
  LEFT JOIN assets ON assets.kit_id = known.kit_id AND assets.asset_id = known.asset_id AND assets.partner = 1
  LEFT JOIN partner_sync AS sync ON sync.kit_id = known.kit_id AND sync.asset_id = known.asset_id
  LEFT JOIN partner_fixes AS fixes ON fixes.kit_id = known.kit_id AND fixes.asset_id = known.asset_id`;

/** All partner assets of the kit, and the removed ones that are remembered. */
async function readPartners(queries: Queries, kit_id: string): Promise<readonly PartnerState[]> {
  return (await sql(queries)`${selected(kit_id)} ORDER BY known.asset_id`).map(stateOf);
}

async function readPartner(queries: Queries, kit_id: string, asset_id: string) {
  const [row] = await sql(queries)`${selected(kit_id)} WHERE known.asset_id = ${asset_id}`;
  return row && stateOf(row);
}

function stateOf(row: Row): PartnerState {
  const revision = Number(row['revision']);
  const { fix = null, data = null } = row;
  return {
    asset_id: String(row['asset_id']),
    gone: Number(row['gone']) === 1,
    revision,
    peer_revision: row['peer_revision'] === null ? null : Number(row['peer_revision']),
    fix_sent_ms: Number(row['fix_sent_ms']),
    record: data === null ? null : recordOf(row, revision),
    fix: fix === null ? null : pushedOf({ feed: 'gps', time_ms: row['fix_ms'], data: fix }),
  };
}

function recordOf(row: Row, revision: number): PartnerRecord {
  const { id, name, type, vendor, model, metadata, parent_id } = assetOf({ data: row['data'] });
  const created_at = new Date(Number(row['created_ms'])).toISOString();
  const created_by = z.string().nullable().parse(row['created_by']);
  return { id, revision, name, type, vendor, model, metadata, parent_id, created_at, created_by };
}

interface Noted {
  readonly revision: number;
  readonly gone?: boolean;
  /** Left out: the other side does not have it. */
  readonly peer_revision?: number;
  readonly created_by?: string | null;
}

/** Notes a change of this side, or a change of the other side. */
async function noteRevision(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  { revision, gone = false, peer_revision, created_by = null }: Noted,
): Promise<void> {
  await sql(queries)`INSERT INTO partner_sync
      (kit_id, asset_id, revision, gone, peer_revision, fix_sent_ms, created_by)
    VALUES (${kit_id}, ${asset_id}, ${revision}, ${gone ? 1 : 0}, ${peer_revision ?? null}, 0, ${created_by})
    ON CONFLICT (kit_id, asset_id) DO UPDATE SET revision = excluded.revision, gone = excluded.gone,
      peer_revision = COALESCE(excluded.peer_revision, partner_sync.peer_revision),
      created_by = COALESCE(partner_sync.created_by, excluded.created_by)`;
}

/**
 * Changes the asset and raises its revision, so that the other side gets it. The row of the revision comes first: it is the
 * lock that lets changes of the same asset follow each other. Returns false when the asset does not exist.
 */
async function editPartner(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  { name, metadata, merges }: PartnerEdit,
): Promise<boolean> {
  const raised = await sql(queries)`INSERT INTO partner_sync
      (kit_id, asset_id, revision, gone, peer_revision, fix_sent_ms, created_by)
    SELECT kit_id, asset_id, 2, 0, NULL, 0, NULL FROM assets
      WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND partner = 1
    ON CONFLICT (kit_id, asset_id) DO UPDATE SET revision = partner_sync.revision + 1 RETURNING revision`;
  if (raised.length === 0) return false;
  const [row] = await sql(queries)`SELECT data, time_ms FROM assets
    WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND partner = 1`;
  // Removed by another replica meanwhile.
  if (!row) return false;
  const asset = assetOf({ data: row['data'] });
  const set = merges ? mergePatch(asset.metadata, metadata) : metadata;
  const changed = { ...asset, name: name ?? asset.name, metadata: set ?? asset.metadata };
  await putAsset(queries, kit_id, changed, Number(row['time_ms']));
  return true;
}

/** Removes the asset, and remembers that. */
async function noteRemoval(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  { isKnownToPeer }: { readonly isKnownToPeer: boolean },
): Promise<boolean> {
  const { revision = 0, gone: wasGone = false } = (await readPartner(queries, kit_id, asset_id)) ?? {};
  const isGone = await deleteAsset(queries, kit_id, asset_id);
  const next = wasGone ? revision : revision + 1;
  const peer = isKnownToPeer ? { peer_revision: next } : {};
  await noteRevision(queries, kit_id, asset_id, { revision: next, gone: true, ...peer });
  await sql(queries)`DELETE FROM partner_sync WHERE kit_id = ${kit_id} AND gone = 1 AND asset_id NOT IN
    (SELECT asset_id FROM partner_sync WHERE kit_id = ${kit_id} AND gone = 1
      ORDER BY revision DESC, asset_id LIMIT ${removals_max})`;
  return isGone;
}

interface Taken {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly change: PartnerChange;
  /** The side that sent it. */
  readonly from: Side;
  readonly now_ms: number;
}

/** Applies what the other side has of an asset. Returns the changes, or why it cannot be taken. */
export async function takePartner(
  queries: Queries,
  taken: Taken,
): Promise<readonly Change[] | { readonly fault: string }> {
  const { kit_id, asset_id, change, from, now_ms } = taken;
  const known = await readPartner(queries, kit_id, asset_id);
  if (change.record === null) {
    const isGone = await noteRemoval(queries, kit_id, asset_id, { isKnownToPeer: true });
    return isGone ? [{ kind: 'asset_gone', kit_id, asset_id }] : [];
  }
  // Removed here: the other side is informed, since its revision is not this one's.
  if (known?.gone) return [];
  const { record } = change;
  const changes: Change[] = [];
  if (!known && (await isFull(queries, kit_id))) {
    return { fault: `a kit has at most ${partner_assets_max} partner assets` };
  }
  if (!known?.record || isOver(record, known.record, from)) {
    await putRecord(queries, kit_id, record);
    changes.push({ kind: 'asset', kit_id, asset_id });
  } else {
    await sql(queries)`UPDATE partner_sync SET peer_revision = ${record.revision}
      WHERE kit_id = ${kit_id} AND asset_id = ${asset_id}`;
  }
  const fix = change.fix && (await takeFix(queries, { ...taken, fix: change.fix, time_ms: now_ms }));
  return fix
    ? [...changes, { kind: 'feed', kit_id, asset_id, message: fix }, { kind: 'asset', kit_id, asset_id }]
    : changes;
}

function isOver(theirs: PartnerRecord, ours: PartnerRecord, from: Side): boolean {
  if (theirs.revision !== ours.revision) return theirs.revision > ours.revision;
  return from === 'kit' && JSON.stringify(contentOf(theirs)) !== JSON.stringify(contentOf(ours));
}

function contentOf({ name, type, vendor, model, metadata, parent_id }: PartnerRecord) {
  return { name, type, vendor, model, metadata, parent_id };
}

async function isFull(queries: Queries, kit_id: string): Promise<boolean> {
  const [row] = await sql(queries)`SELECT COUNT(*) AS count FROM assets
    WHERE kit_id = ${kit_id} AND partner = 1`;
  return Number(row?.['count']) >= partner_assets_max;
}

async function putRecord(queries: Queries, kit_id: string, record: PartnerRecord): Promise<void> {
  const { id: asset_id, revision, created_by } = record;
  const created_ms = Date.parse(record.created_at);
  const asset_key = `${kit_id}:partner:${asset_id}`;
  await putAsset(queries, kit_id, partnerAsset({ ...record, asset_id, asset_key, created_ms }), created_ms);
  await noteRevision(queries, kit_id, asset_id, { revision, peer_revision: revision, created_by });
}

interface TakenFix {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly fix: PartnerFixMessage;
  /** When it arrived. A fix from a clock that is ahead counts as of then, so that it blocks no later one. */
  readonly time_ms: number;
}

/** Stores a fix of the other side unless a newer one is there. */
async function takeFix(queries: Queries, taken: TakenFix): Promise<StoredFeed | undefined> {
  const { kit_id, asset_id, fix } = taken;
  const { lat, lon, alt_m, bearing, speed_mps, source, timestamp } = fix;
  const time_ms = Math.min(taken.time_ms, Date.parse(timestamp));
  const data = { lat, lon, alt_m, bearing, speed_mps, source, timestamp };
  const row = { kit_id, asset_id, data: JSON.stringify(data), alt_m, time_ms };
  const stored = await insertFix(queries, row, 'partner_fixes.time_ms < excluded.time_ms');
  return stored.length > 0 ? { feed: 'gps', time_ms, data } : undefined;
}

/**
 * Stores a fix that was pushed at the kit. The kit's fixes are ordered by epoch and seq, and its newest one against the
 * cloud's by time. Undefined: it is a message of another feed.
 */
export async function takeKitFix(
  queries: Queries,
  { kit_id, asset_id, feed, message, data }: FeedArrival,
  now_ms: number,
): Promise<readonly Change[] | undefined> {
  // Positions of drones have no source; to find that out with the schema costs more than to store them.
  const fix = feed === 'gps' && 'source' in data ? partnerFix.safeParse(data).data : undefined;
  if (!fix) return undefined;
  const known = await readPartner(queries, kit_id, asset_id);
  if (!known?.record) return undefined;
  const { epoch, seq } = message;
  await noteRevision(queries, kit_id, asset_id, { revision: known.revision });
  const newest = await sql(queries)`UPDATE partner_sync SET epoch = ${epoch}, seq = ${seq}
    WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND (epoch, seq) < (${epoch}, ${seq})
    RETURNING asset_id`;
  if (newest.length === 0) return [];
  const stored = await takeFix(queries, { kit_id, asset_id, fix, time_ms: now_ms });
  if (!stored) return [];
  await noteFixSent(queries, kit_id, asset_id, stored.time_ms);
  return [
    { kind: 'feed', kit_id, asset_id, message: stored },
    { kind: 'asset', kit_id, asset_id },
  ];
}

/** Notes that the other side has the fix of this time. */
async function noteFixSent(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  fix_ms: number,
): Promise<void> {
  await sql(queries)`UPDATE partner_sync SET fix_sent_ms = ${fix_ms}
    WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND fix_sent_ms < ${fix_ms}`;
}

/** Stores a partner asset in place of what was known of it. */
async function putAsset(
  queries: Queries,
  kit_id: string,
  asset: StoredAsset,
  created_ms: number,
): Promise<void> {
  await sql(queries)`INSERT INTO assets (kit_id, asset_id, data, partner, time_ms, epoch, seq, unsynced)
    VALUES (${kit_id}, ${asset.id}, ${JSON.stringify(asset)}, 1, ${created_ms}, 0, 0, 0)
    ON CONFLICT (kit_id, asset_id) DO UPDATE SET data = excluded.data, gone = 0, partner = 1`;
}

async function deleteAsset(queries: Queries, kit_id: string, asset_id: string): Promise<boolean> {
  const gone = await sql(queries)`DELETE FROM assets WHERE kit_id = ${kit_id}
    AND asset_id = ${asset_id} AND partner = 1 RETURNING asset_id`;
  for (const table of ['feeds', 'partner_fixes']) {
    await sql(queries)`DELETE FROM ${raw(table)} WHERE ${isEach({ kit_id, asset_id })}`;
  }
  return gone.length > 0;
}

interface FixRow {
  readonly kit_id: string;
  readonly asset_id: string;
  /** JSON text. */
  readonly data: string;
  readonly alt_m: number | null;
  readonly time_ms: number;
}

/** Inserts a fix, or replaces the existing one under this condition. */
async function insertFix(queries: Queries, row: FixRow, condition: string): Promise<readonly Row[]> {
  const clauses = `ON CONFLICT (kit_id, asset_id) DO UPDATE SET data = excluded.data,
    alt_m = COALESCE(excluded.alt_m, partner_fixes.alt_m), time_ms = excluded.time_ms
    WHERE ${condition} RETURNING asset_id`;
  return insertRows(queries, 'partner_fixes', [{ ...row }], clauses);
}

/**
 * Stores the fix as the newest message of the asset's `gps` feed, unless a newer one is there. The position of the asset is
 * read from it; a fix without an altitude keeps the known one. A stored time that is still to come, since the clock was set
 * back, blocks nothing.
 */
async function putFix(
  queries: Queries,
  kit_id: string,
  { asset_id, fix, time_ms = Infinity }: PushedFix,
  now_ms: number,
): Promise<LandedFix> {
  const fix_ms = Math.min(time_ms, now_ms);
  const data = { ...fix, source: 'api', timestamp: new Date(fix_ms).toISOString() };
  const row = { kit_id, asset_id, data: JSON.stringify(data), alt_m: fix.alt_m, time_ms: fix_ms };
  const inserted = await insertFix(queries, row, 'partner_fixes.time_ms <= excluded.time_ms');
  const stored = inserted.length > 0 ? inserted : await replaceFuture(queries, row, now_ms);
  return { asset_id, message: { feed, time_ms: fix_ms, data }, isNewest: stored.length > 0 };
}

/** Replaces a stored fix whose time is still to come. */
async function replaceFuture(
  queries: Queries,
  { kit_id, asset_id, data, alt_m, time_ms }: FixRow,
  now_ms: number,
): Promise<readonly Row[]> {
  return sql(queries)`UPDATE partner_fixes SET data = ${data}, alt_m = COALESCE(CAST(${alt_m}
    AS DOUBLE PRECISION), alt_m), time_ms = ${time_ms}
    WHERE kit_id = ${kit_id} AND asset_id = ${asset_id} AND time_ms > ${now_ms} RETURNING asset_id`;
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

function partnerAsset(partner: Omit<PartnerAsset, 'kit_id' | 'created_by'>): StoredAsset {
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
