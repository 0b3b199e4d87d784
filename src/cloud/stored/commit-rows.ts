/** Reads and writes the kit rows of a commit, in as few statements as possible. */
import { clause, listed, sql, type Queries } from '../sql/database.ts';
import { inPortions, insertRows } from '../sql/many-rows.ts';
import { lagOf } from './rows.ts';
import type { StoredKit } from './stored.ts';

/** What a commit adds to the counters of a kit. */
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
  /** The place of the commit in the order of arrival, by kit. */
  readonly arrived: ReadonlyMap<string, number>;
  readonly lags: ReadonlyMap<string, StoredKit['lag']>;
}

/** Matches the JSON text of a state, where a quotation mark inside a value is escaped. */
const offline_pattern = '%"online":false%';

/** Inserts new kits, and locks all until the transaction ends, in this order. */
export async function lockKits(queries: Queries, kit_ids: readonly string[]): Promise<void> {
  const rows = kit_ids.map((kit_id) => ({ kit_id }));
  await insertRows(queries, 'kits', rows, 'ON CONFLICT (kit_id) DO UPDATE SET kit_id = excluded.kit_id');
}

/**
 * Locks the kits as `lockKits` does, and adds to their counters what `expected` names, so that a commit without a surprise writes each row
 * once. A new kit keeps a negative `heard_ms` until `count` replaces it, in the same transaction.
 */
export async function lockAndCount(
  queries: Queries,
  expected: readonly Count[],
  now_ms: number,
): Promise<Locked> {
  const new_kits: string[] = [];
  const not_online = new Set<string>();
  const arrived = new Map<string, number>();
  const lags = new Map<string, StoredKit['lag']>();
  const counted = expected.map(({ kit_id, received, heard_ms, landed }) => {
    return { kit_id, received, heard_ms: -1 - heard_ms, landed, landed_ms: now_ms, arrived_ms: now_ms };
  });
  // The place in the order of arrival is greater than that of any commit before: two replicas may have different clocks, and a
  // millisecond several commits.
  const rows = await insertRows(
    queries,
    'kits',
    counted,
    `ON CONFLICT (kit_id) DO UPDATE SET received = kits.received + excluded.received,
       heard_ms = CASE WHEN kits.heard_ms IS NULL THEN excluded.heard_ms
         WHEN kits.heard_ms > -1 - excluded.heard_ms THEN kits.heard_ms ELSE -1 - excluded.heard_ms END,
       landed_ms = CASE WHEN kits.landed > 0 THEN kits.landed_ms ELSE excluded.landed_ms END,
       landed = kits.landed + excluded.landed,
       arrived_ms = CASE WHEN kits.arrived_ms >= excluded.arrived_ms THEN kits.arrived_ms + 1 ELSE excluded.arrived_ms END
     RETURNING kit_id, heard_ms, arrived_ms, lag_ms, lag_since_ms, CASE WHEN state IS NULL OR state LIKE '${offline_pattern}' THEN 1 ELSE 0 END AS not_online`,
  );
  for (const row of rows) {
    arrived.set(String(row['kit_id']), Number(row['arrived_ms']));
    lags.set(String(row['kit_id']), lagOf(row));
    if (Number(row['heard_ms']) < 0) new_kits.push(String(row['kit_id']));
    if (Number(row['not_online']) === 1) not_online.add(String(row['kit_id']));
  }
  return { new_kits, not_online, arrived, lags };
}

/** Adds what `expected` does not name; `isNew` of kits whose row `lockAndCount` made. */
export function correctionOf(actual: Count, expected: Count, isNew: boolean): readonly Count[] {
  const received = actual.received - expected.received;
  const landed = actual.landed - expected.landed;
  const { duplicates, refused, vouched_ms } = actual;
  const isAsExpected = received === 0 && landed === 0 && duplicates === 0 && refused === 0;
  return isAsExpected && vouched_ms === null && !isNew ? [] : [{ ...actual, received, landed }];
}

export async function count(queries: Queries, counts: readonly Count[], now_ms: number): Promise<void> {
  await inPortions(counts, async (some) => {
    const rows = some.map(({ kit_id, received, duplicates, refused, heard_ms, vouched_ms, landed }) => {
      const numbers = [received, duplicates, refused, heard_ms, vouched_ms, landed];
      return clause`(${kit_id}, ${listed(numbers.map((each) => clause`CAST(${each} AS BIGINT)`))})`;
    });
    return sql(
      queries,
    )`UPDATE kits SET received = received + new.column2, duplicates = duplicates + new.column3,
        refused = refused + new.column4,
        heard_ms = CASE WHEN heard_ms > new.column5 THEN heard_ms ELSE new.column5 END,
        vouched_ms = COALESCE(new.column6, vouched_ms),
        landed_ms = CASE WHEN landed > 0 THEN landed_ms ELSE CAST(${now_ms} AS BIGINT) END,
        landed = landed + new.column7
      FROM (VALUES ${listed(rows)}) AS new WHERE kits.kit_id = new.column1`;
  });
}
