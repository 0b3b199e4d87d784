/** What was erased of a history: messages of a kit or an asset that were observed before a time, also messages that arrive later. */
import { readChannel } from '../../contract/topics.ts';
import { clause, listed, nothing, sql, type Queries, type Row } from '../sql/database.ts';
import { inPortions } from '../sql/many-rows.ts';
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
  const behind = after === undefined ? nothing : clause`AND asset_id > ${after}`;
  const rows = await sql(queries)`SELECT * FROM history_erased WHERE kit_id = ${kit_id} ${behind}
    ORDER BY asset_id LIMIT ${limit}`;
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
  return (await readTombstonesOf(queries, [kit_id]))(kit_id);
}

/** What was erased of these kits. */
export async function readTombstonesOf(
  queries: Queries,
  kit_ids: Iterable<string>,
): Promise<(kit_id: string) => Tombstones> {
  const rows = await inPortions(
    [...new Set(kit_ids)],
    async (some) => sql(queries)`SELECT kit_id, asset_id, before_ms FROM history_erased
      WHERE kit_id IN (VALUES ${listed(some.map((kit_id) => clause`(${kit_id})`))})`,
  );
  const byKit = Map.groupBy(rows, (row) => String(row['kit_id']));
  return (kit_id) =>
    new Map(byKit.get(kit_id)?.map((row) => [String(row['asset_id']), Number(row['before_ms'])]));
}

/** `asset_id`: of what is about an asset; `observed_ms`: of `observedMs` or `observedOn`. */
export function isBuried(
  tombstones: Tombstones,
  asset_id: string | null | undefined,
  observed_ms: number,
): boolean {
  return ['', asset_id ?? ''].some((id) => observed_ms < (tombstones.get(id) ?? 0));
}

export function isErased(
  tombstones: Tombstones,
  message: Pick<HistoryMessage, 'channel' | 'data'>,
  observed_ms: number,
): boolean {
  return tombstones.size > 0 && isBuried(tombstones, assetOf(message), observed_ms);
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
