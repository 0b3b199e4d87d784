/** Statements for many rows at once: over a network each statement costs a round trip. */

/** Rows of one statement: few numbers, so that few texts have to be prepared. */
const rows_at_once = [64, 16, 4, 1] as const;

/** The rows in portions of one of a few sizes. */
export function* portions<T>(rows: readonly T[]): Iterable<readonly T[]> {
  let at = 0;
  for (const size of rows_at_once) {
    for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size);
  }
}

/** `place`, such as `(?, ?)`, once for each row. */
export function places(rows: readonly unknown[], place: string): string {
  return rows.map(() => place).join(', ');
}
