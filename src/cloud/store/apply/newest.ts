/** Keeps the newest of several values, whatever the order in which they come. */
import { assigned, isEach, raw, sql, type Queries, type SqlValue } from '../../sql/database.ts';
import { insertRows } from '../../sql/many-rows.ts';
import type { Stamp } from '../../stored/stored.ts';

export interface Place {
  readonly table: 'kit_parts' | 'assets' | 'asset_status' | 'commands' | 'feeds' | 'rosters';
  /** Columns of the primary key; `kit_id` is one of them. */
  readonly key: Readonly<Record<string, string>> & { readonly kit_id: string };
  /** Rows that one kit may have in this table. */
  readonly rows_max: number;
}

/** `stale`: a newer one is there. `full`: the kit has too many rows. */
export type Put = 'stored' | 'stale' | 'full';

/** Makes replicas of an older version, which compare times otherwise, order these rows by epoch and seq as well. */
const unsynced = 1;

/** Stores the columns unless the row has a newer stamp. */
export async function putNewest(
  queries: Queries,
  { table, key, rows_max }: Place,
  columns: Readonly<Record<string, SqlValue>>,
  stamp: Stamp,
): Promise<Put> {
  const { time_ms, epoch, seq } = stamp;
  const all: Readonly<Record<string, SqlValue>> = { ...columns, time_ms, epoch, seq, unsynced };
  const [rows, where] = [raw(table), isEach(key)];
  // The time of day has no part in it (`contract/README.md`, Envelope).
  const updated = await sql(queries)`UPDATE ${rows} SET ${assigned(all)}
    WHERE ${where} AND (${epoch}, ${seq}) > (epoch, seq) RETURNING kit_id`;
  if (updated.length > 0) return 'stored';
  const [here] = await sql(queries)`SELECT 1 AS here FROM ${rows} WHERE ${where}`;
  if (here) return 'stale';
  const { kit_id } = key;
  const isFull = async (): Promise<boolean> => {
    const [count] = await sql(queries)`SELECT COUNT(*) AS rows FROM ${rows} WHERE kit_id = ${kit_id}`;
    return Number(count?.['rows']) >= rows_max;
  };
  if ((await isFull()) && !((await forgetGone(queries, kit_id)) && !(await isFull()))) return 'full';
  await insertRows(queries, table, [{ ...key, ...all }]);
  return 'stored';
}

/**
 * Forgets the assets of the kit that are gone, with all that was stored of them; whether there were any. Until room is needed they are
 * kept, so that an older message brings none of them back. Whoever can reach a radio of the kit can appear as a new vehicle again and
 * again: without this, those that are gone would take the places of new ones for good.
 */
export async function forgetGone(queries: Queries, kit_id: string): Promise<boolean> {
  const gone = await sql(queries)`DELETE FROM assets WHERE kit_id = ${kit_id} AND gone = 1
    AND partner = 0 RETURNING asset_id`;
  if (gone.length === 0) return false;
  for (const table of ['commands', 'asset_status', 'feeds'])
    await sql(queries)`DELETE FROM ${raw(table)} WHERE kit_id = ${kit_id}
      AND asset_id NOT IN (SELECT asset_id FROM assets WHERE kit_id = ${kit_id})`;
  return true;
}
