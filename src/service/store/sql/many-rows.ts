/** Statements for many rows at once: over a network each statement costs a round trip. */

import type { Queries } from './database.ts';

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
  return askAll([...portions(rows)], ask);
}

/**
 * The same for a statement that joins the rows with tables of kits. Where these are divided over several servers, only one row at a time
 * can be joined: the server of its kit answers.
 */
export async function inJoinedPortions<T, R>(
  queries: Queries,
  rows: readonly T[],
  ask: (some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  return askAll(queries.isDivided === true ? rows.map((row) => [row]) : [...portions(rows)], ask);
}

async function askAll<T, R>(
  some: readonly (readonly T[])[],
  ask: (rows: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  return (await allSettled(some.map(async (rows) => ask(rows)))).flat();
}

/** Returns all results after the last one has settled: after a failure no other work may still be writing. */
export async function allSettled<T>(works: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** `place`, such as `(?, ?)`, once for each row. */
export function places(rows: readonly unknown[], place: string): string {
  return rows.map(() => place).join(', ');
}
