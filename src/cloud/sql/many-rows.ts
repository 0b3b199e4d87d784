/** Statements for many rows at once: over a network each statement costs a round trip. */
import type { Queries, Row, SqlValue } from './database.ts';

/** Rows of one statement: few numbers, so that few texts have to be prepared. */
const rows_at_once = [64, 16, 4, 1] as const;

/** The rows in portions of one of a few sizes. */
export function* portions<T>(rows: readonly T[]): Iterable<readonly T[]> {
  let at = 0;
  for (const size of rows_at_once) {
    for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size);
  }
}

/**
 * Asks for each portion without waiting for the one before: over a network, statements need not wait for each other. Resolves with
 * all rows when the last statement has settled.
 */
export async function inPortions<T, R>(
  rows: readonly T[],
  ask: (some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  return (await allSettled([...portions(rows)].map(async (some) => ask(some)))).flat();
}

/** Returns all results after the last one has settled: after a failure no other work may still be writing. */
export async function allSettled<T>(works: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** Inserts rows, whose members have the names of the columns. `clauses` follow the values; returns what they return. */
export async function insertRows(
  queries: Queries,
  table: string,
  rows: readonly Readonly<Record<string, SqlValue>>[],
  clauses = '',
): Promise<readonly Row[]> {
  const columns = Object.keys(rows[0] ?? {});
  const place = `(${places(columns, '?')})`;
  return inPortions(rows, async (some) =>
    queries.all(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places(some, place)} ${clauses}`,
      ...some.flatMap((row) => columns.map((name) => row[name] ?? null)),
    ),
  );
}

/** `place`, such as `(?, ?)`, once for each row. */
export function places(rows: readonly unknown[], place: string): string {
  return rows.map(() => place).join(', ');
}
