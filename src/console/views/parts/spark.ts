/** A small chart of one figure. Where no value was observed the line is left open and the plot hatched. */
import { number } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from './html.ts';
import type { Sample } from '../../types.d.ts';

const height = 28;
/** A longer pause between two samples is drawn as a gap: kits repeat what does not change every 300 s. */
const gap_usual_ms = 330_000;

interface About {
  what: string;
  unit: string;
  /** Fixed; else it fills its place. */
  width?: number;
  /** Lower end of the scale; the smallest value when left out. */
  low?: number;
  top?: number;
  isAccent?: boolean;
}

export function spark(samples: readonly Sample[], { what, unit, width, low, top, isAccent = false }: About) {
  const known = samples.flatMap(({ value }) => (value === null ? [] : [value]));
  const runs = runsOf(samples);
  // Dots alone are no course.
  if (runs.every((run) => run.length === 1)) return '';
  const least = Math.min(...known);
  const most = Math.max(...known);
  const w = width ?? 150;
  const [floor, ceiling] = [low ?? least, top ?? most];
  const { x, y } = scalesOf(samples, { w, floor, ceiling });
  const path = runs
    .map((run) => lineThrough(run.map(({ time_ms, value }) => [x(time_ms), y(value)])))
    .join('');
  const fill = runs.map((run) => areaUnder(run.map(({ time_ms, value }) => [x(time_ms), y(value)]))).join('');
  const chart = html`<svg
    class=${isAccent ? 'spark accent' : 'spark'}
    width=${width ?? '100%'}
    height=${height}
    viewBox="0 0 ${w} ${height}"
    preserveAspectRatio="none"
    role="img"
    aria-label=${t.chart.range({ what, least: Math.round(least), most: Math.round(most), unit })}
  >
    ${gapsOf(samples).map(([from, to]) => html`<rect key=${from} x=${x(from)} y="2" width=${Math.max(2, x(to) - x(from))} height=${height - 4} fill="url(#hatch)" />`)}
    <path class="f" d=${fill} />
    <path class="l" d=${path} vector-effect="non-scaling-stroke" />
  </svg>`;
  // Without a scale it would show a course of nothing; a small one stands beside its number.
  return width === undefined
    ? html`<span class="scaled"
        >${chart}<span class="scale" aria-hidden="true"
          ><span>${number(ceiling)}${unit && `\u00a0${unit}`}</span><span>${number(floor)}</span></span
        ></span
      >`
    : chart;
}

function scalesOf(
  samples: readonly Sample[],
  { w, floor, ceiling }: { readonly w: number; readonly floor: number; readonly ceiling: number },
) {
  const span = Math.max(1e-9, (ceiling - floor) * 1.08);
  const first_ms = samples[0]?.time_ms ?? 0;
  const span_ms = Math.max(1, (samples.at(-1)?.time_ms ?? 0) - first_ms);
  return {
    x: (time_ms: number) => 2 + ((time_ms - first_ms) / span_ms) * (w - 6),
    y: (value: number) => height - 3 - ((value - floor) / span) * (height - 7),
  };
}

/** What lies below a line; nothing below a dot. */
function areaUnder(points: readonly (readonly [x: number, y: number])[]) {
  if (points.length < 2) return '';
  const [from = 0] = points[0] ?? [];
  const [to = 0] = points.at(-1) ?? [];
  const line = points.map(([x, y]) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join('');
  return `M${from.toFixed(1)} ${height - 2}${line}L${to.toFixed(1)} ${height - 2}Z`;
}

/** The stretches with values and without a pause. */
export function runsOf(
  samples: readonly Sample[],
  gap_ms: number = gap_usual_ms,
): readonly (readonly { readonly time_ms: number; readonly value: number }[])[] {
  const runs: { time_ms: number; value: number }[][] = [];
  let last_ms = Number.NEGATIVE_INFINITY;
  for (const { time_ms, value } of samples) {
    if (value === null) {
      last_ms = Number.NEGATIVE_INFINITY;
    } else {
      if (time_ms - last_ms > gap_ms) runs.push([]);
      runs.at(-1)?.push({ time_ms, value });
      last_ms = time_ms;
    }
  }
  return runs;
}

/** The stretches in which an answer was awaited and none came. */
export function gapsOf(samples: readonly Sample[]): readonly (readonly [from_ms: number, to_ms: number])[] {
  const gaps: [number, number][] = [];
  for (const [i, { time_ms, value }] of samples.entries()) {
    const previous = samples[i - 1];
    if (value === null && previous?.value !== null) gaps.push([time_ms, time_ms]);
    const open = gaps.at(-1);
    if (open && (value === null || previous?.value === null) && previous !== undefined) open[1] = time_ms;
  }
  return gaps;
}

/** A point without a neighbour is a dot: a path that only moves would draw nothing. */
export function lineThrough(points: readonly (readonly [x: number, y: number])[]) {
  const places = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return places.length === 0 ? '' : `M${places.join('L')}${places.length === 1 ? 'h0' : ''}`;
}
