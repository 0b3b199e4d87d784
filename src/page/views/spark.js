/** A small chart of a link figure since the page was opened. */
import { html } from './html.js';

/** @import { Sample } from '../types.d.ts' */

const width = 120;
const height = 28;
/** A longer pause between two samples is drawn as a gap. */
const gap_ms = 200_000;

/**
 * @param {readonly Sample[]} samples
 * @param {{ readonly what: string, readonly unit: string }} about
 */
export function spark(samples, { what, unit }) {
  const known = samples.flatMap(({ value }) => (value === null ? [] : [value]));
  if (known.length < 2) return '';
  const top = Math.max(...known);
  const first_ms = samples[0]?.time_ms ?? 0;
  const span_ms = Math.max(1, (samples.at(-1)?.time_ms ?? 0) - first_ms);
  let path = '';
  let last_ms = Number.NEGATIVE_INFINITY;
  for (const { time_ms, value } of samples) {
    if (value === null) {
      last_ms = Number.NEGATIVE_INFINITY;
    } else {
      const x = ((time_ms - first_ms) / span_ms) * width;
      const y = height - 2 - (value / Math.max(top, 1e-9)) * (height - 4);
      path += `${time_ms - last_ms > gap_ms ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
      last_ms = time_ms;
    }
  }
  const text = `${what}, ${Math.round(Math.min(...known))} to ${Math.round(top)} ${unit}`;
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" role="img" aria-label=${text}>
    <path d=${path} />
  </svg>`;
}
