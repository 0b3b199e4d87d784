/** A chart of several lines over time. The axis is the time that was asked for; gaps are left open, silence is hatched. */
import { clock, number } from '../../world/units.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { name } from '../parts/marks.js';
import { gapsOf, runsOf } from '../parts/spark.js';

/** @import { Sample } from '../../types.d.ts' */

/** @typedef {{ readonly title: string, readonly samples: readonly Sample[] }} Line */

const w = 640;
const h = 240;
const left = 44;
const right = 12;
const top = 10;
const bottom = 26;
const ticks = 4;

/** @param {{ readonly lines: readonly Line[], readonly from_ms: number, readonly to_ms: number, readonly unit: string }} about */
export function chart({ lines, from_ms, to_ms, unit }) {
  const inside = lines.map(({ title, samples }) => ({
    title,
    samples: samples.filter(({ time_ms }) => time_ms >= from_ms),
  }));
  const most = Math.max(10, ...inside.flatMap(({ samples }) => samples.map(({ value }) => value ?? 0)));
  const step = roundUp(most / ticks);
  const x = (/** @type {number} */ time_ms) =>
    left + ((time_ms - from_ms) / (to_ms - from_ms)) * (w - left - right);
  const y = (/** @type {number} */ value) => h - bottom - (value / (step * ticks)) * (h - top - bottom);
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => from_ms + share * (to_ms - from_ms));
  return html`<div class="reads">
      ${inside.map(({ title, samples }, i) => {
        const last = samples.findLast(({ value }) => value !== null)?.value;
        return html`<span key=${title}
          ><span class="cap"
            ><svg class="chart" width="22" height="6" aria-hidden="true">
              <path class=${`l l${i}`} d="M0 3H22" /></svg
            >${name(title)}</span
          ><b
            >${typeof last === 'number' ? number(last) : t.notReported}<small>
              ${typeof last === 'number' ? unit : ''}</small
            ></b
          ></span
        >`;
      })}
    </div>
    <svg class="chart plot" viewBox="0 0 ${w} ${h}" role="img" aria-label=${describe(inside, unit)}>
      ${Array.from({ length: ticks + 1 }, (_, i) => i * step).map((value) => html`<g key=${value}><path class="grid" d=${`M${left} ${y(value)}H${w - right}`} /><text x=${left - 8} y=${y(value) + 4} text-anchor="end">${number(value)}</text></g>`)}
      ${times.map((time_ms, i) => html`<text key=${i} x=${x(time_ms)} y=${h - 6} text-anchor=${i === 0 ? 'start' : i === 4 ? 'end' : 'middle'}>${i === 4 ? t.now : clock(time_ms)}</text>`)}
      ${gapsOf(inside[0]?.samples ?? []).map(([a, b]) => html`<rect key=${a} class="off" x=${x(a)} y=${top} width=${Math.max(2, x(b) - x(a))} height=${h - top - bottom} />`)}
      ${inside.map(({ title, samples }, i) => html`<path key=${title} class=${`l l${i}`} d=${pathOf(samples, x, y)} />`)}
    </svg>`;
}

/**
 * @param {readonly Sample[]} samples
 * @param {(time_ms: number) => number} x
 * @param {(value: number) => number} y
 */
function pathOf(samples, x, y) {
  return runsOf(samples)
    .flatMap((run) =>
      run.map(
        ({ time_ms, value }, i) => `${i === 0 ? 'M' : 'L'}${x(time_ms).toFixed(1)} ${y(value).toFixed(1)}`,
      ),
    )
    .join('');
}

/**
 * The lines as sentences, for those who do not see the picture.
 * @param {readonly Line[]} lines
 * @param {string} unit
 */
function describe(lines, unit) {
  return lines
    .map(({ title, samples }) => {
      const known = samples.flatMap(({ value }) => (value === null ? [] : [value]));
      if (known.length === 0) return `${title}: ${t.notReported}`;
      return t.chart.range({
        what: title,
        least: Math.round(Math.min(...known)),
        most: Math.round(Math.max(...known)),
        unit,
      });
    })
    .join('; ');
}

/**
 * The smallest of 1, 2, 2.5, 5, 10, 20, ... that is not below `value`.
 * @param {number} value
 */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= value) ?? 10);
}
