/** The availability strip: 96 cells; full: all answered, half: some, hatched: none, low: not observed. */
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';

/** @import { Sample } from '../../types.d.ts' */

const cells = 96;
const cell_px = 8;
/** A value counts for so long after it was observed: kits repeat what does not change every 300 s. */
const holds_ms = 330_000;

/** @typedef {'all' | 'part' | 'none' | 'unknown'} Cell */

/**
 * @param {readonly Sample[]} samples
 * @param {number} from_ms
 * @param {number} to_ms
 */
export function strip(samples, from_ms, to_ms) {
  const found = cellsOf(samples, from_ms, to_ms);
  const known = found.filter((cell) => cell !== 'unknown').length;
  const all = found.filter((cell) => cell === 'all').length;
  const text = known === 0 ? t.chart.notObserved : t.chart.answered(Math.round((100 * all) / known));
  return html`<svg
    class="strip"
    viewBox="0 0 ${cells * cell_px} 26"
    preserveAspectRatio="none"
    role="img"
    aria-label=${text}
  >
    ${found.map((cell, i) => {
      const high = { all: 24, part: 14, none: 24, unknown: 6 }[cell];
      return html`<rect
        key=${i}
        class=${cell}
        x=${i * cell_px}
        y=${25 - high}
        width="6.5"
        height=${high}
        rx="1.5"
      />`;
    })}
  </svg>`;
}

/**
 * @param {readonly Sample[]} samples share of the time with an answer, 0 to 1; null: not observed
 * @param {number} from_ms
 * @param {number} to_ms
 * @returns {readonly Cell[]}
 */
export function cellsOf(samples, from_ms, to_ms) {
  const wide_ms = (to_ms - from_ms) / cells;
  return Array.from({ length: cells }, (_, i) => {
    const start_ms = from_ms + i * wide_ms;
    const end_ms = start_ms + wide_ms;
    const inside = samples.filter(({ time_ms }) => time_ms >= start_ms && time_ms < end_ms);
    const before = samples.findLast(({ time_ms }) => time_ms < start_ms && start_ms - time_ms <= holds_ms);
    const seen = (inside.length > 0 ? inside : before ? [before] : []).flatMap(({ value }) => value ?? []);
    if (seen.length === 0) return 'unknown';
    if (seen.every((share) => share === 1)) return 'all';
    return seen.every((share) => share === 0) ? 'none' : 'part';
  });
}
