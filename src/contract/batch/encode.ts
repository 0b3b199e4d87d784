/** Writes the columns of a batch: many values of one kind as few characters, so that `decodeColumn` returns exactly the same values. */
import { encodeDeltas } from './deltas.ts';
import type { Json } from '../json.ts';

/** More decimals than any sensor has; a column that needs more is kept as it is. */
export const decimals_max = 9;
/** Scaled values stay below this, so that they and their differences are exact integers. */
export const scaled_max = 2 ** 51;
export const powers = Array.from({ length: decimals_max + 1 }, (_, s) => 10 ** s);

/** JSON text of the column of these values, at least one. */
export function encodeColumn(values: readonly Json[]): string {
  return encodeNumbers(values) ?? encodeTimes(values) ?? encodePlain(values);
}

function encodeNumbers(values: readonly Json[]): string | undefined {
  const scale = scaleOf(values);
  if (scale === undefined) return undefined;
  const { s, integers } = scale;
  const [first] = integers;
  if (integers.every((integer) => integer === first)) return `{"c":${JSON.stringify(values[0])}}`;
  return `{"s":${s},"d":${encodeDeltas(integers)}}`;
}

/**
 * The values as integers of the fewest decimals that suit all of them. An integer divided by a power of ten is the very
 * double that the decimal text stands for (IEEE 754 divides exactly rounded), and each one is checked to be the value.
 */
function scaleOf(values: readonly Json[]): { s: number; integers: number[] } | undefined {
  let s = 0;
  for (;;) {
    const integers = integersOf(values, powers[s]);
    if (integers === undefined) return undefined;
    if (integers.length === values.length) return { s, integers };
    // The value behind the last that fitted needs more decimals.
    const more = decimalsOf(Number(values[integers.length]), s + 1);
    if (more === undefined) return undefined;
    s = more;
  }
}

/** The fewest decimals from `least` on that suit a value; undefined when it has too many. */
function decimalsOf(value: number, least: number): number | undefined {
  for (let s = least; s <= decimals_max; s += 1) if (isScaled(value, powers[s])) return s;
  return undefined;
}

/** The scaled values up to the first that needs more decimals; undefined when one is no number. */
function integersOf(values: readonly Json[], power = 1): number[] | undefined {
  const integers: number[] = [];
  for (const value of values) {
    if (typeof value !== 'number') return undefined;
    const integer = Math.round(value * power);
    if (integer / power !== value || integer >= scaled_max || integer <= -scaled_max) return integers;
    integers.push(integer);
  }
  return integers;
}

function isScaled(value: number, power = 1): boolean {
  const integer = Math.round(value * power);
  return integer / power === value && integer < scaled_max && integer > -scaled_max;
}

/** JSON text of the column of values that are JSON texts, at least one. */
export function encodeTexts(texts: readonly string[]): string {
  const [first = ''] = texts;
  // Only a time of day is so long and ends so, and not every column shall be looked through for it.
  const times =
    first.length === 26 && first.endsWith('Z"')
      ? encodeTimes(texts.map((text) => (text.startsWith('"') ? text.slice(1, -1) : null)))
      : undefined;
  return times ?? plainTexts(texts);
}

function encodeTimes(values: readonly Json[]): string | undefined {
  const times: number[] = [];
  for (const value of values) {
    if (typeof value !== 'string' || value.length !== 24 || value.charAt(23) !== 'Z') return undefined;
    const time_ms = Date.parse(value);
    if (Number.isNaN(time_ms) || new Date(time_ms).toISOString() !== value) return undefined;
    times.push(time_ms);
  }
  return `{"t":${encodeDeltas(times)}}`;
}

function encodePlain(values: readonly Json[]): string {
  const [head] = values;
  // Words, which seldom change: one of them is enough.
  if (typeof head === 'string' && values.every((value) => value === head))
    return `{"c":${JSON.stringify(head)}}`;
  return plainTexts(values.map((value) => JSON.stringify(value)));
}

function plainTexts(texts: readonly string[]): string {
  const [first] = texts;
  return texts.every((text) => text === first) ? `{"c":${first}}` : `{"v":[${texts.join(',')}]}`;
}
