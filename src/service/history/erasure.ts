/** What was erased: messages of a kit or an asset that were observed before a time, also messages that arrive later. */
import { readChannel } from '../../contract/topics.ts';
import type { Queries } from '../store/sql/database.ts';
import { inJoinedPortions, places } from '../store/sql/many-rows.ts';
import type { HistoryMessage } from './message.ts';

/** By asset id, empty for the whole kit: everything observed before this time is erased. */
export type Tombstones = ReadonlyMap<string, number>;

export async function readTombstones(queries: Queries, kit_id: string): Promise<Tombstones> {
  const rows = await queries.all('SELECT asset_id, before_ms FROM history_erased WHERE kit_id = ?', kit_id);
  return new Map(rows.map((row) => [String(row['asset_id']), Number(row['before_ms'])]));
}

export function isErased(
  tombstones: Tombstones,
  message: Pick<HistoryMessage, 'channel' | 'time_ms' | 'data'>,
): boolean {
  if (tombstones.size === 0) return false;
  if (message.time_ms < (tombstones.get('') ?? 0)) return true;
  const asset_id = assetOf(message);
  return asset_id !== undefined && message.time_ms < (tombstones.get(asset_id) ?? 0);
}

/** Times before which kits and assets were erased, by both ids. */
export type Erased = ReadonlyMap<string, number>;

/** Something observed of a kit, or of one of its assets. */
interface Observed {
  readonly kit_id: string;
  readonly asset_id: string | null;
  /** Time of observation, milliseconds since 1970. */
  readonly time_ms: number;
}

/** What was erased of these kits. */
export async function readErased(queries: Queries, kit_ids: Iterable<string>): Promise<Erased> {
  const rows = await inJoinedPortions(queries, [...new Set(kit_ids)], async (some) =>
    queries.all(
      `SELECT kit_id, asset_id, before_ms FROM history_erased WHERE kit_id IN (VALUES ${places(some, '(?)')})`,
      ...some,
    ),
  );
  return new Map(rows.map((row) => [keyOf(row['kit_id'], row['asset_id']), Number(row['before_ms'])]));
}

/** What was observed then is erased, whenever it arrives. */
export function isOfErased(erased: Erased, { kit_id, asset_id, time_ms }: Observed): boolean {
  return ['', asset_id ?? ''].some((id) => time_ms < (erased.get(keyOf(kit_id, id)) ?? 0));
}

function keyOf(kit_id: unknown, asset_id: unknown): string {
  return `${String(kit_id)} ${String(asset_id)}`;
}

/** A condition on `(kit_id, asset_id, time_ms)`: nothing of the kit or the asset that was observed then is erased. */
export const not_erased = `NOT EXISTS (SELECT 1 FROM history_erased
  WHERE kit_id = ? AND asset_id IN ('', ?) AND before_ms > CAST(? AS BIGINT))`;

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
