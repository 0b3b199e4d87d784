/** Writes columns of texts and times; `decodeColumn` returns exactly the same values. */
import { encodeDeltas } from './deltas.ts';

/** More decimals than any sensor has; a column that needs more is kept as it is. */
export const decimals_max = 9;
/** Scaled values stay below this, so that they and their differences are exact integers. */
export const scaled_max = 2 ** 51;
export const powers = Array.from({ length: decimals_max + 1 }, (_, s) => 10 ** s);

/** JSON text of the column of values that are JSON texts, at least one. */
export function encodeTexts(texts: readonly string[]): string {
  return encodeTimes(texts) ?? plainTexts(texts);
}

/** Undefined: not all of them are times of day. */
function encodeTimes(texts: readonly string[]): string | undefined {
  const times: number[] = [];
  for (const text of texts) {
    if (text.length !== 26 || !text.endsWith('Z"')) return undefined;
    const time_ms = Date.parse(text.slice(1, -1));
    if (Number.isNaN(time_ms) || JSON.stringify(new Date(time_ms)) !== text) return undefined;
    times.push(time_ms);
  }
  return `{"t":${encodeDeltas(times)}}`;
}

function plainTexts(texts: readonly string[]): string {
  const [first] = texts;
  return texts.every((text) => text === first) ? `{"c":${first}}` : `{"v":[${texts.join(',')}]}`;
}
