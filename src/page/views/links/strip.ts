/** The availability strip: 96 cells; full: all answered, half: some, hatched: none, low: not observed. */
import { cells, cellsOf } from '../../world/history/cells.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { Sample } from '../../types.d.ts';

const cell_px = 8;

export function strip(samples: readonly Sample[], from_ms: number, to_ms: number) {
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
