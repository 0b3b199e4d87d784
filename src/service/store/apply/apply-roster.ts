/** Removes the assets that the roster of the kit does not name, unless they were announced after it. */
import { z } from 'zod';
import { roster } from '../../../contract/assets.ts';
import { readLenient } from '../../ingest/lenient.ts';
import type { Applied, Arrival } from './apply.ts';
import type { Queries } from '../sql/database.ts';
import { type Place, putNewest } from './newest.ts';
import { jsonOf } from '../rows.ts';
import type { Change } from '../store.ts';

const ids = jsonOf.pipe(z.array(z.string()));

export async function applyRoster(queries: Queries, { kit_id, message }: Arrival): Promise<Applied> {
  const read = readLenient(roster, message.data);
  if ('fault' in read) return read;
  const place: Place = { table: 'rosters', key: { kit_id }, rows_max: 1 };
  const assets = JSON.stringify(read.data.assets);
  if ((await putNewest(queries, place, { assets }, message)) !== 'stored') return [];
  const { epoch, seq, time_ms } = message;
  const older = await queries.all(
    'SELECT asset_id FROM assets WHERE kit_id = ? AND partner = 0 AND gone = 0 AND (epoch, seq) < (?, ?)',
    kit_id,
    epoch,
    seq,
  );
  const named = new Set(read.data.assets);
  const changes: Change[] = [];
  for (const asset_id of older.map((row) => String(row['asset_id']))) {
    if (named.has(asset_id)) continue;
    await queries.all(
      'UPDATE assets SET gone = 1, epoch = ?, seq = ?, time_ms = ? WHERE kit_id = ? AND asset_id = ?',
      epoch,
      seq,
      time_ms,
      kit_id,
      asset_id,
    );
    changes.push({ kind: 'asset_gone', kit_id, asset_id });
  }
  return changes;
}

/** Returns whether the announcement is older than the newest roster and its asset is missing there. */
export async function isRemovedByRoster(
  queries: Queries,
  arrival: Arrival,
  asset_id: string,
): Promise<boolean> {
  const { kit_id, message } = arrival;
  const [row] = await queries.all(
    'SELECT assets FROM rosters WHERE kit_id = ? AND (epoch, seq) > (?, ?)',
    kit_id,
    message.epoch,
    message.seq,
  );
  return row !== undefined && !ids.parse(row['assets']).includes(asset_id);
}
