/**
 * Checks the counts of a batch before any schema sees it, and stops at the first fault: a schema collects a fault for each
 * element, so 8 kB of compressed text filled the memory of a reader.
 */
import { keys_max, tooManyKeys } from '../bounded-json.ts';
import { batch_items_max, tooMany } from './pack.ts';

/** Keys of one group with columns. */
export const batch_keys_max = 1_024;
/** Keys of an object of the format itself. */
const fields_max = 16;

/** Throws a `RangeError` at the first count that contradicts another or exceeds its limit. */
export function checkCounts(value: unknown): void {
  const groups = fieldsOf(value, 'a batch')['groups'];
  if (!Array.isArray(groups)) return;
  if (groups.length > batch_items_max)
    throw new RangeError(`${groups.length} groups; at most ${batch_items_max}`);
  let count = 0;
  // Keys of columns, which become keys of messages.
  const keys = new Set<string>();
  for (const group of groups) {
    count += checkGroup(fieldsOf(group, 'a group'), keys);
    if (count > batch_items_max) throw tooMany(count);
  }
}

/** The number of messages of the group. */
function checkGroup({ seq, t, k, c, v }: Readonly<Record<string, unknown>>, known: Set<string>): number {
  const rows = lengthOf(seq, 'seq');
  if (rows > batch_items_max) throw tooMany(rows);
  const times = lengthOf(t, 't');
  const data = v === undefined ? rows : lengthOf(v, 'v');
  if (times !== rows || data !== rows) {
    throw new RangeError(`${rows} messages with ${times} times and ${data} data`);
  }
  checkIntegers(seq);
  checkIntegers(t);
  if (v === undefined) checkColumns(k, c, rows, known);
  return rows;
}

function checkColumns(k: unknown, c: unknown, rows: number, known: Set<string>): void {
  const keys = lengthOf(k, 'k');
  const columns = lengthOf(c, 'c');
  if (keys > batch_keys_max) throw new RangeError(`${keys} keys in a group; at most ${batch_keys_max}`);
  if (columns !== keys) throw new RangeError(`${columns} columns for ${keys} keys`);
  if (!Array.isArray(k) || !Array.isArray(c)) return;
  for (const key of k) {
    if (typeof key !== 'string') throw new RangeError('a key that is no string');
    known.add(key);
  }
  if (known.size > keys_max) throw tooManyKeys();
  for (const column of c) {
    const { d, t, v } = fieldsOf(column, 'a column');
    for (const list of [d, t, v]) {
      if (list === undefined) continue;
      const length = lengthOf(list, 'a column');
      if (length !== rows) throw new RangeError(`a column has ${length} values for ${rows} messages`);
    }
    checkIntegers(d);
    checkIntegers(t);
  }
}

function checkIntegers(list: unknown): void {
  if (Array.isArray(list) && !list.every(Number.isSafeInteger)) {
    throw new RangeError('a list of differences with a value that is no integer');
  }
}

function lengthOf(list: unknown, name: string): number {
  if (!Array.isArray(list)) throw new RangeError(`${name}: expected array`);
  return list.length;
}

function fieldsOf(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RangeError(`${name}: expected object`);
  }
  const entries = Object.entries(value);
  if (entries.length > fields_max)
    throw new RangeError(`${name} of ${entries.length} keys; at most ${fields_max}`);
  return Object.fromEntries(entries);
}
