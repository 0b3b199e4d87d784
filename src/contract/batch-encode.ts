/** Writes the columns of a batch: many values of one kind as few characters, so that `decodeColumn` gives back the very same values. */
import type { Json } from './json.ts';

/** More decimals than any sensor has; a column that needs more is kept as it is. */
export const decimals_max = 9;
/** Scaled values stay below this, so that they and their differences are exact integers. */
const scaled_max = 2 ** 51;
export const powers = Array.from({ length: decimals_max + 1 }, (_, s) => 10 ** s);

/** JSON text of the column of these values, at least one. */
export function encodeColumn(values: readonly Json[]): string {
  return encodeNumbers(values) ?? encodeTimes(values) ?? encodePlain(values);
}

/** JSON text of the integers as a first value and differences. */
export function encodeDeltas(integers: readonly number[]): string {
  return `[${integers.map((integer, index) => integer - (integers[index - 1] ?? 0)).join(',')}]`;
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
  for (const value of values) {
    if (typeof value !== 'number') return undefined;
    while (!isScaled(value, powers[s])) {
      if (s === decimals_max) return undefined;
      s += 1;
    }
  }
  const power = powers[s] ?? 1;
  const integers: number[] = [];
  for (const value of values) {
    if (typeof value !== 'number' || !isScaled(value, power)) return undefined;
    integers.push(Math.round(value * power));
  }
  return { s, integers };
}

function isScaled(value: number, power = 1): boolean {
  const integer = Math.round(value * power);
  return integer / power === value && integer < scaled_max && integer > -scaled_max;
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
  const texts = values.map((value) => JSON.stringify(value));
  const [first] = texts;
  return texts.every((text) => text === first) ? `{"c":${first}}` : `{"v":[${texts.join(',')}]}`;
}
