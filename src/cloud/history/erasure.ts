/** What was erased of a history: messages of a kit or an asset that were observed before a time, also messages that arrive later. */
import { readChannel } from '../../contract/topics.ts';
import type { Queries, Row } from '../sql/database.ts';
import { inPortions, places } from '../sql/many-rows.ts';
import type { HistoryMessage } from './message.ts';
import { isMisdated } from './retention.ts';
import type { ErasureQuery, StoredErasure } from '../stored/stored.ts';
import { day_ms } from '../../platform/time.ts';

/** By asset id, empty for the whole kit: everything observed before this time is erased. */
export type Tombstones = ReadonlyMap<string, number>;

/** The erasures of a kit that are in force, by asset, that of the whole kit first. `after`: the asset of the last one before. */
export async function readErasures(
  queries: Queries,
  { kit_id, after, limit }: ErasureQuery,
): Promise<readonly StoredErasure[]> {
  const rows = await queries.all(
    `SELECT * FROM history_erased WHERE kit_id = ? ${after === undefined ? '' : 'AND asset_id > ?'} ORDER BY asset_id LIMIT ?`,
    kit_id,
    ...(after === undefined ? [] : [after]),
    limit,
  );
  return rows.map(erasureOf);
}

export function erasureOf(row: Row): StoredErasure {
  const asset_id = String(row['asset_id']);
  return {
    kit_id: String(row['kit_id']),
    asset_id: asset_id === '' ? undefined : asset_id,
    before_ms: Number(row['before_ms']),
    erased_ms: Number(row['erased_ms']),
  };
}

export async function readTombstones(queries: Queries, kit_id: string): Promise<Tombstones> {
  const rows = await queries.all('SELECT asset_id, before_ms FROM history_erased WHERE kit_id = ?', kit_id);
  return new Map(rows.map((row) => [String(row['asset_id']), Number(row['before_ms'])]));
}

/** `observed_ms`: of `observedMs` or `observedOn`. */
export function isErased(
  tombstones: Tombstones,
  message: Pick<HistoryMessage, 'channel' | 'data'>,
  observed_ms: number,
): boolean {
  if (tombstones.size === 0) return false;
  if (observed_ms < (tombstones.get('') ?? 0)) return true;
  const asset_id = assetOf(message);
  return asset_id !== undefined && observed_ms < (tombstones.get(asset_id) ?? 0);
}

/**
 * When a message was observed, as far as erasures are concerned: its arrival where its own time says nothing. A kit whose clock was
 * never set dates everything before any erasure, and would be silenced by one.
 */
export function observedMs(message: Pick<HistoryMessage, 'time_ms' | 'unsynced'>, landed_ms: number): number {
  return isMisdated(message, landed_ms) ? landed_ms : message.time_ms;
}

/** The same of a message of a segment: of an arrival, only the day is known. */
export function observedOn(
  { time_ms }: Pick<HistoryMessage, 'time_ms'>,
  { misdated, day }: { readonly misdated: boolean; readonly day: number },
): number {
  return misdated ? (day + 1) * day_ms - 1 : time_ms;
}

/** Times before which kits and assets were erased, by both ids. */
export type Erased = ReadonlyMap<string, number>;

/** Something observed of a kit, or of one of its assets. */
interface Observed {
  readonly kit_id: string;
  readonly asset_id: string | null;
  /** Of `observedMs`. */
  readonly observed_ms: number;
}

/** What was erased of these kits. */
export async function readErased(queries: Queries, kit_ids: Iterable<string>): Promise<Erased> {
  const rows = await inPortions([...new Set(kit_ids)], async (some) =>
    queries.all(
      `SELECT kit_id, asset_id, before_ms FROM history_erased WHERE kit_id IN (VALUES ${places(some, '(?)')})`,
      ...some,
    ),
  );
  return new Map(rows.map((row) => [keyOf(row['kit_id'], row['asset_id']), Number(row['before_ms'])]));
}

/** What was observed then is erased, whenever it arrives. */
export function isOfErased(erased: Erased, { kit_id, asset_id, observed_ms }: Observed): boolean {
  return ['', asset_id ?? ''].some((id) => observed_ms < (erased.get(keyOf(kit_id, id)) ?? 0));
}

function keyOf(kit_id: unknown, asset_id: unknown): string {
  return `${String(kit_id)} ${String(asset_id)}`;
}

/** The asset that the message is about. */
export function assetOf({ channel, data }: Pick<HistoryMessage, 'channel' | 'data'>): string | undefined {
  const read = readChannel(channel);
  if (!read) return undefined;
  if ('asset_id' in read) return read.asset_id;
  if (read.kind !== 'task') return undefined;
  const report: unknown = JSON.parse(data);
  const asset_id: unknown =
    typeof report === 'object' && report !== null ? Reflect.get(report, 'asset_id') : undefined;
  return typeof asset_id === 'string' ? asset_id : undefined;
}
