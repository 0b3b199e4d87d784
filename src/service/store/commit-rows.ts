/**
 * What a commit reads and writes of all its kits, in as few statements as can be: over a network each one costs a round trip.
 * Statements are for one of a few numbers of rows, so that few texts have to be prepared.
 */
import type { Queries, SqlValue } from './database.ts';
import type { Range } from './ranges.ts';
import { rangesOf } from './rows.ts';

/** Epochs of one kit whose messages are remembered; a connector that starts every minute for an hour stays inside. */
export const epochs_max = 64;
const rows_at_once = [64, 16, 4, 1] as const;

/** What of a kit rises with a commit. */
export interface Count {
  readonly kit_id: string;
  readonly received: number;
  readonly duplicates: number;
  readonly refused: number;
  readonly heard_ms: number;
}

/** The sequence numbers that were stored before; none when the epoch is new. */
export type KnownRanges = (kit_id: string, epoch: number) => readonly Range[];

/** Makes the kits that are new, and locks all until the transaction ends, in this order. Answers those never heard of before. */
export async function lockKits(queries: Queries, kit_ids: readonly string[]): Promise<readonly string[]> {
  const new_kits: string[] = [];
  for (const some of portions(kit_ids)) {
    const rows = await queries.all(
      `INSERT INTO kits (kit_id) VALUES ${places(some, '(?)')}
       ON CONFLICT (kit_id) DO UPDATE SET kit_id = excluded.kit_id RETURNING kit_id, heard_ms`,
      ...some,
    );
    new_kits.push(...rows.filter((row) => row['heard_ms'] === null).map((row) => String(row['kit_id'])));
  }
  return new_kits;
}

export async function readRanges(
  queries: Queries,
  epochs: readonly (readonly [kit_id: string, epoch: number])[],
): Promise<KnownRanges> {
  const known = new Map<string, readonly Range[]>();
  for (const some of portions(epochs)) {
    const rows = await queries.all(
      `SELECT kit_id, epoch, ranges FROM received
       WHERE (kit_id, epoch) IN (VALUES ${places(some, '(?, CAST(? AS BIGINT))')})`,
      ...some.flat(),
    );
    for (const row of rows)
      known.set(`${String(row['kit_id'])} ${Number(row['epoch'])}`, rangesOf.parse(row['ranges']));
  }
  return (kit_id, epoch) => known.get(`${kit_id} ${epoch}`) ?? [];
}

export async function writeRanges(
  queries: Queries,
  epochs: readonly { readonly kit_id: string; readonly epoch: number; readonly ranges: readonly Range[] }[],
): Promise<void> {
  for (const some of portions(epochs)) {
    await queries.all(
      `INSERT INTO received (kit_id, epoch, ranges) VALUES ${places(some, '(?, ?, ?)')}
       ON CONFLICT (kit_id, epoch) DO UPDATE SET ranges = excluded.ranges`,
      ...some.flatMap(({ kit_id, epoch, ranges }): SqlValue[] => [kit_id, epoch, JSON.stringify(ranges)]),
    );
  }
}

export async function forgetOldEpochs(queries: Queries, kit_id: string): Promise<void> {
  await queries.all(
    `DELETE FROM received WHERE kit_id = ? AND epoch NOT IN
       (SELECT epoch FROM received WHERE kit_id = ? ORDER BY epoch DESC LIMIT ?)`,
    kit_id,
    kit_id,
    epochs_max,
  );
}

export async function count(queries: Queries, counts: readonly Count[]): Promise<void> {
  const big = 'CAST(? AS BIGINT)';
  for (const some of portions(counts)) {
    await queries.all(
      `UPDATE kits SET received = received + new.column2, duplicates = duplicates + new.column3,
         refused = refused + new.column4,
         heard_ms = CASE WHEN heard_ms > new.column5 THEN heard_ms ELSE new.column5 END
       FROM (VALUES ${places(some, `(?, ${big}, ${big}, ${big}, ${big})`)}) AS new WHERE kits.kit_id = new.column1`,
      ...some.flatMap(({ kit_id, received, duplicates, refused, heard_ms }) => [
        kit_id,
        received,
        duplicates,
        refused,
        heard_ms,
      ]),
    );
  }
}

function* portions<T>(rows: readonly T[]): Iterable<readonly T[]> {
  let at = 0;
  for (const size of rows_at_once) {
    for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size);
  }
}

function places(rows: readonly unknown[], place: string): string {
  return rows.map(() => place).join(', ');
}
