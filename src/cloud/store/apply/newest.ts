/** Keeps the newest of several values, whatever the order in which they come. */
import type { Queries, SqlValue } from '../../sql/database.ts';
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

/** The condition under which a value replaces the row (`contract/README.md`, Envelope). The time of day has no part in it. */
const is_newer = '(?, ?) > (epoch, seq)';

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
  const where = Object.keys(key)
    .map((name) => `${name} = ?`)
    .join(' AND ');
  const updated = await queries.all(
    `UPDATE ${table} SET ${Object.keys(all)
      .map((name) => `${name} = ?`)
      .join(', ')}
     WHERE ${where} AND ${is_newer} RETURNING kit_id`,
    ...Object.values(all),
    ...Object.values(key),
    epoch,
    seq,
  );
  if (updated.length > 0) return 'stored';
  const [here] = await queries.all(`SELECT 1 AS here FROM ${table} WHERE ${where}`, ...Object.values(key));
  if (here) return 'stale';
  const [count] = await queries.all(`SELECT COUNT(*) AS rows FROM ${table} WHERE kit_id = ?`, key.kit_id);
  if (Number(count?.['rows']) >= rows_max) return 'full';
  const row = { ...key, ...all };
  await queries.all(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
      .map(() => '?')
      .join(', ')})`,
    ...Object.values(row),
  );
  return 'stored';
}
