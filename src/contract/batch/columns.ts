/** Reads the columns of a batch, which `encode.ts` writes. */
import { z } from 'zod';
import { decimals_max, powers } from './encode.ts';
import { batch_items_max } from './pack.ts';
import { json, type Json } from '../json.ts';

const decimals = z.int().min(0).max(decimals_max);
const deltas = z
  .array(z.int())
  .min(1)
  .max(batch_items_max)
  .describe('the first value, then the difference of each value from the one before');

export const deltaColumn = deltas;
const scaledColumn = z.strictObject({ s: decimals.describe('decimals'), d: deltas });
const timeColumn = z.strictObject({
  t: deltas.describe('UTC timestamps in milliseconds since 1970, as deltas'),
});
const plainColumn = z.strictObject({ v: z.array(json).min(1).max(batch_items_max) });
const constantColumn = z.strictObject({ c: json.describe('the value of every row') });

export const column = z.union([scaledColumn, timeColumn, plainColumn, constantColumn]);
export type Column = z.output<typeof column>;

/** Undoes `encodeDeltas`. */
export function decodeDeltas(differences: readonly number[]): number[] {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}

/**
 * JSON texts of the values of a column of `rows` rows.
 * Throws a `RangeError` when the column has another number of rows or a time that does not exist.
 */
export function decodeColumn(encoded: Column, rows: number): readonly string[] {
  if ('c' in encoded) return Array<string>(rows).fill(JSON.stringify(encoded.c));
  const texts = textsOf(encoded);
  if (texts.length !== rows) throw new RangeError(`a column has ${texts.length} values for ${rows} messages`);
  return texts;
}

function textsOf(encoded: Exclude<Column, { c: Json }>): string[] {
  if ('v' in encoded) return encoded.v.map((value) => JSON.stringify(value));
  if ('t' in encoded) return decodeDeltas(encoded.t).map((time_ms) => `"${new Date(time_ms).toISOString()}"`);
  const power = powers[encoded.s] ?? 1;
  return decodeDeltas(encoded.d).map((integer) => JSON.stringify(integer / power));
}
