/**
 * Keeps the partner assets of a kit the same at its own service and at the cloud's (`decisions/0027`): a removal is final,
 * otherwise the greater revision counts, and of equal ones the kit's.
 */
import { z } from 'zod';
import {
  type PartnerChange,
  partnerFix,
  type PartnerFixMessage,
  type PartnerRecord,
} from '../../contract/partners.ts';
import type { FeedArrival } from './apply/apply-feeds.ts';
import type { Queries, Row } from './sql/database.ts';
import { deleteAsset, fixValues, insert_fix, partnerAsset, putAsset } from './partners.ts';
import { assetOf, pushedOf } from './rows.ts';
import type { Change, PartnerEdit, PartnerState, StoredFeed } from './store.ts';

/** Partner assets of one kit. */
export const partner_assets_max = 256;
/** Removals of one kit that are remembered, so that the other side learns them; the oldest are forgotten. */
const removals_max = 256;

/** Which side a change comes from. */
export type Side = 'kit' | 'cloud';

const select = `SELECT known.asset_id, assets.data, COALESCE(sync.revision, 1) AS revision, COALESCE(sync.gone, 0) AS gone,
    sync.peer_revision, COALESCE(sync.fix_sent_ms, 0) AS fix_sent_ms, sync.created_by, assets.time_ms AS created_ms,
    fixes.data AS fix, fixes.time_ms AS fix_ms
  FROM (SELECT kit_id, asset_id FROM assets WHERE kit_id = ? AND partner = 1
        UNION SELECT kit_id, asset_id FROM partner_sync WHERE kit_id = ?) AS known
  LEFT JOIN assets ON assets.kit_id = known.kit_id AND assets.asset_id = known.asset_id AND assets.partner = 1
  LEFT JOIN partner_sync AS sync ON sync.kit_id = known.kit_id AND sync.asset_id = known.asset_id
  LEFT JOIN partner_fixes AS fixes ON fixes.kit_id = known.kit_id AND fixes.asset_id = known.asset_id`;

/** All partner assets of the kit, and the removed ones that are remembered. */
export async function readPartners(queries: Queries, kit_id: string): Promise<readonly PartnerState[]> {
  return (await queries.all(`${select} ORDER BY known.asset_id`, kit_id, kit_id)).map(stateOf);
}

async function readPartner(queries: Queries, kit_id: string, asset_id: string) {
  const [row] = await queries.all(`${select} WHERE known.asset_id = ?`, kit_id, kit_id, asset_id);
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
export async function noteRevision(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  { revision, gone = false, peer_revision, created_by = null }: Noted,
): Promise<void> {
  await queries.all(
    `INSERT INTO partner_sync (kit_id, asset_id, revision, gone, peer_revision, fix_sent_ms, created_by)
     VALUES (?, ?, ?, ?, ?, 0, ?)
     ON CONFLICT (kit_id, asset_id) DO UPDATE SET revision = excluded.revision, gone = excluded.gone,
       peer_revision = COALESCE(excluded.peer_revision, partner_sync.peer_revision),
       created_by = COALESCE(partner_sync.created_by, excluded.created_by)`,
    kit_id,
    asset_id,
    revision,
    gone ? 1 : 0,
    peer_revision ?? null,
    created_by,
  );
}

/**
 * Changes the asset and raises its revision, so that the other side gets it. The row of the revision comes first: it is the
 * lock that lets changes of the same asset follow each other. Returns false when the asset does not exist.
 */
export async function editPartner(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  { name, metadata }: PartnerEdit,
): Promise<boolean> {
  const raised = await queries.all(
    `INSERT INTO partner_sync (kit_id, asset_id, revision, gone, peer_revision, fix_sent_ms, created_by)
     SELECT kit_id, asset_id, 2, 0, NULL, 0, NULL FROM assets WHERE kit_id = ? AND asset_id = ? AND partner = 1
     ON CONFLICT (kit_id, asset_id) DO UPDATE SET revision = partner_sync.revision + 1 RETURNING revision`,
    kit_id,
    asset_id,
  );
  if (raised.length === 0) return false;
  const [row] = await queries.all(
    'SELECT data, time_ms FROM assets WHERE kit_id = ? AND asset_id = ? AND partner = 1',
    kit_id,
    asset_id,
  );
  // Removed by another replica meanwhile.
  if (!row) return false;
  const asset = assetOf({ data: row['data'] });
  const changed = { ...asset, name: name ?? asset.name, metadata: metadata ?? asset.metadata };
  await putAsset(queries, kit_id, changed, Number(row['time_ms']));
  return true;
}

/** Removes the asset, and remembers that. */
export async function noteRemoval(
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
  await queries.all(
    `DELETE FROM partner_sync WHERE kit_id = ? AND gone = 1 AND asset_id NOT IN
       (SELECT asset_id FROM partner_sync WHERE kit_id = ? AND gone = 1 ORDER BY revision DESC, asset_id LIMIT ?)`,
    kit_id,
    kit_id,
    removals_max,
  );
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
    await queries.all(
      'UPDATE partner_sync SET peer_revision = ? WHERE kit_id = ? AND asset_id = ?',
      record.revision,
      kit_id,
      asset_id,
    );
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
  const [row] = await queries.all(
    'SELECT COUNT(*) AS count FROM assets WHERE kit_id = ? AND partner = 1',
    kit_id,
  );
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
  const stored = await queries.all(
    `${insert_fix} WHERE partner_fixes.time_ms < excluded.time_ms RETURNING asset_id`,
    ...fixValues({ kit_id, asset_id, data, alt_m, time_ms }),
  );
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
  const newest = await queries.all(
    'UPDATE partner_sync SET epoch = ?, seq = ? WHERE kit_id = ? AND asset_id = ? AND (epoch, seq) < (?, ?) RETURNING asset_id',
    epoch,
    seq,
    kit_id,
    asset_id,
    epoch,
    seq,
  );
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
export async function noteFixSent(
  queries: Queries,
  kit_id: string,
  asset_id: string,
  fix_ms: number,
): Promise<void> {
  await queries.all(
    'UPDATE partner_sync SET fix_sent_ms = ? WHERE kit_id = ? AND asset_id = ? AND fix_sent_ms < ?',
    fix_ms,
    kit_id,
    asset_id,
    fix_ms,
  );
}
