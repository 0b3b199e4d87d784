/** The availability strip: 96 cells; full: all answered, half: some, hatched: none, low: not observed. */
import { cells, cellsOf } from '../../world/history/cells.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';

/** @import { Sample } from '../../types.d.ts' */

const cell_px = 8;

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
