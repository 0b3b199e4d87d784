/** What was erased: messages of a kit or an asset that were observed before a time, also messages that arrive later. */
import { readChannel } from '../../contract/topics.ts';
import type { Queries } from '../store/sql/database.ts';
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
