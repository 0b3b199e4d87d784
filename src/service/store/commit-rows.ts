/** Reads and writes the kit rows of a commit, in as few statements as possible. */
import type { Queries } from './sql/database.ts';
import { places, portions } from './sql/many-rows.ts';

/** The counters that a commit increases. */
export interface Count {
  readonly kit_id: string;
  readonly received: number;
  readonly duplicates: number;
  readonly refused: number;
  readonly heard_ms: number;
  /** Null: no retained birth is among the messages. */
  readonly vouched_ms: number | null;
}

export interface Locked {
  /** Kits that were not known before. */
  readonly new_kits: readonly string[];
  /** Kits without a known presence, or with an offline one. */
  readonly not_online: ReadonlySet<string>;
}

/** Matches the JSON text of a state, where a quotation mark inside a value is escaped. */
const offline_pattern = '%"online":false%';

/** Inserts new kits, and locks all until the transaction ends, in this order. */
export async function lockKits(queries: Queries, kit_ids: readonly string[]): Promise<Locked> {
  const new_kits: string[] = [];
  const not_online = new Set<string>();
  for (const some of portions(kit_ids)) {
    const rows = await queries.all(
      `INSERT INTO kits (kit_id) VALUES ${places(some, '(?)')}
       ON CONFLICT (kit_id) DO UPDATE SET kit_id = excluded.kit_id
       RETURNING kit_id, heard_ms, CASE WHEN state IS NULL OR state LIKE '${offline_pattern}' THEN 1 ELSE 0 END AS not_online`,
      ...some,
    );
    for (const row of rows) {
      if (row['heard_ms'] === null) new_kits.push(String(row['kit_id']));
      if (Number(row['not_online']) === 1) not_online.add(String(row['kit_id']));
    }
  }
  return { new_kits, not_online };
}

export async function count(queries: Queries, counts: readonly Count[]): Promise<void> {
  const big = 'CAST(? AS BIGINT)';
  for (const some of portions(counts)) {
    await queries.all(
      `UPDATE kits SET received = received + new.column2, duplicates = duplicates + new.column3,
         refused = refused + new.column4,
         heard_ms = CASE WHEN heard_ms > new.column5 THEN heard_ms ELSE new.column5 END,
         vouched_ms = COALESCE(new.column6, vouched_ms)
       FROM (VALUES ${places(some, `(?, ${big}, ${big}, ${big}, ${big}, ${big})`)}) AS new WHERE kits.kit_id = new.column1`,
      ...some.flatMap(({ kit_id, received, duplicates, refused, heard_ms, vouched_ms }) => [
        kit_id,
        received,
        duplicates,
        refused,
        heard_ms,
        vouched_ms,
      ]),
    );
  }
}
