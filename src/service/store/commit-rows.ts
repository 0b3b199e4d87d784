/** Reads and writes the kit rows of a commit, in as few statements as possible. */
import type { Queries } from './sql/database.ts';
import { inPortions, places } from './sql/many-rows.ts';

/** The counters that a commit increases. */
export interface Count {
  readonly kit_id: string;
  readonly received: number;
  readonly duplicates: number;
  readonly refused: number;
  readonly heard_ms: number;
  /** Null: no retained birth is among the messages. */
  readonly vouched_ms: number | null;
  /** Messages that the compactor has to divide. */
  readonly landed: number;
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
  const rows = await inPortions(kit_ids, async (some) =>
    queries.all(
      `INSERT INTO kits (kit_id) VALUES ${places(some, '(?)')}
       ON CONFLICT (kit_id) DO UPDATE SET kit_id = excluded.kit_id
       RETURNING kit_id, heard_ms, CASE WHEN state IS NULL OR state LIKE '${offline_pattern}' THEN 1 ELSE 0 END AS not_online`,
      ...some,
    ),
  );
  for (const row of rows) {
    if (row['heard_ms'] === null) new_kits.push(String(row['kit_id']));
    if (Number(row['not_online']) === 1) not_online.add(String(row['kit_id']));
  }
  return { new_kits, not_online };
}

export async function count(queries: Queries, counts: readonly Count[], now_ms: number): Promise<void> {
  const big = 'CAST(? AS BIGINT)';
  await inPortions(counts, async (some) =>
    queries.all(
      `UPDATE kits SET received = received + new.column2, duplicates = duplicates + new.column3,
         refused = refused + new.column4,
         heard_ms = CASE WHEN heard_ms > new.column5 THEN heard_ms ELSE new.column5 END,
         vouched_ms = COALESCE(new.column6, vouched_ms),
         landed_ms = CASE WHEN landed > 0 THEN landed_ms ELSE ${big} END, landed = landed + new.column7
       FROM (VALUES ${places(some, `(?, ${big}, ${big}, ${big}, ${big}, ${big}, ${big})`)}) AS new
       WHERE kits.kit_id = new.column1`,
      now_ms,
      ...some.flatMap(({ kit_id, received, duplicates, refused, heard_ms, vouched_ms, landed }) => [
        kit_id,
        received,
        duplicates,
        refused,
        heard_ms,
        vouched_ms,
        landed,
      ]),
    ),
  );
}
