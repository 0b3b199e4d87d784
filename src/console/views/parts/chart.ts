/** A chart of several lines over time. The axis is the time that was asked for; gaps are left open, silence is hatched. */
import { clock, number } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from './html.ts';
import { name } from './marks.ts';
import { gapsOf, runsOf, lineThrough } from './spark.ts';
import type { Sample } from '../../types.d.ts';

interface Line {
  readonly title: string;
  readonly samples: readonly Sample[];
}

interface About {
  lines: readonly Line[];
  from_ms: number;
  to_ms: number;
  unit: string;
  /** A longer pause between two samples is left open. */
  gap_ms?: number | undefined;
  /** Height of the plot, px. */
  h?: number;
  /** Upper end of the scale at least. */
  top_value?: number;
  /** The scale need not begin at zero. */
  isFree?: boolean;
  /** The values of this moment are read out; null: the newest. */
  moment_ms?: number | null;
  /** Its end is now. */
  isLive?: boolean;
  /** Of the first line; left out: where its samples are null. */
  silences?: readonly (readonly [from_ms: number, to_ms: number])[];
}

/** Pixels above and below the plot, which is as wide as its place: text keeps its size. */
const top = 10;
const bottom = 26;
const ticks = 4;
/** Units of the width of the lines, which are stretched to the width of the plot. */
const wide = 1_000;

export function chart(about: About) {
  const { lines, from_ms, to_ms, unit, gap_ms, h = 240, moment_ms = null, isLive = false, silences } = about;
  const inside = lines.map(({ title, samples }) => ({
    title,
    samples: samples.filter(({ time_ms }) => time_ms >= from_ms),
  }));
  const { low, step } = scaleOf(inside, about);
  const shareOf = (time_ms: number) => (time_ms - from_ms) / (to_ms - from_ms);
  const percent = (share: number) => `${(100 * share).toFixed(2)}%`;
  const x = (time_ms: number) => wide * shareOf(time_ms);
  const y = (value: number) => h - bottom - ((value - low) / (step * ticks)) * (h - top - bottom);
  const shares = matchMedia('(max-width: 639px), (min-width: 900px) and (max-width: 1239px)').matches
    ? [0, 0.5, 1]
    : [0, 0.25, 0.5, 0.75, 1];
  return html`<div class="reads">
      ${inside.map(({ title, samples }, i) => readout({ title, i, unit, value: valueAt(samples, moment_ms) }))}
    </div>
    <svg class="chart plot" height=${h} role="img" aria-label=${describe(inside, unit)}>
      ${Array.from({ length: ticks + 1 }, (_, i) => low + i * step).map((value) => html`<g key=${value}><line class="grid" x2="100%" y1=${y(value)} y2=${y(value)} /><text x="-8" y=${y(value) + 4} text-anchor="end">${number(value, step < 1 ? 1 : 0)}</text></g>`)}
      ${shares.map((share) => html`<text key=${share} x=${percent(share)} y=${h - 6} text-anchor=${share === 0 ? 'start' : share === 1 ? 'end' : 'middle'}>${share === 1 && isLive ? t.now : axisText(from_ms + share * (to_ms - from_ms), to_ms - from_ms)}</text>`)}
      ${(silences ?? gapsOf(inside[0]?.samples ?? [])).map(([a, b]) => html`<rect key=${a} class="off" x=${percent(shareOf(a))} y=${top} width=${percent(Math.max(0.003, shareOf(b) - shareOf(a)))} height=${h - top - bottom} />`)}
      ${moment_ms !== null && html`<line class="cursor" x1=${percent(shareOf(moment_ms))} x2=${percent(shareOf(moment_ms))} y1=${top} y2=${h - bottom} />`}
      <svg width="100%" height=${h} viewBox=${`0 0 ${wide} ${h}`} preserveAspectRatio="none">
        ${inside.map(({ title, samples }, i) => lineOf(title, i, runsOf(samples, gap_ms), { x, y }))}
      </svg>
    </svg>`;
}

/** A line, and as dots what has no neighbour. */
function lineOf(
  title: string,
  i: number,
  runs: ReturnType<typeof runsOf>,
  { x, y }: { readonly x: (time_ms: number) => number; readonly y: (value: number) => number },
) {
  const path = (wanted: ReturnType<typeof runsOf>) =>
    wanted.map((run) => lineThrough(run.map(({ time_ms, value }) => [x(time_ms), y(value)]))).join('');
  return html`<g key=${title} class="l l${i}">
    <path d=${path(runs.filter((run) => run.length > 1))} vector-effect="non-scaling-stroke" />
    <path class="lone" d=${path(runs.filter((run) => run.length === 1))} vector-effect="non-scaling-stroke" />
  </g>`;
}

function readout({
  title,
  i,
  unit,
  value,
}: {
  readonly title: string;
  readonly i: number;
  readonly unit: string;
  readonly value: number | null | undefined;
}) {
  return html`<span key=${title}
    ><span class="cap"
      ><svg class="chart" width="22" height="6" aria-hidden="true">
        <path class=${`l l${i}`} d="M0 3H22" /></svg
      >${name(title)}</span
    ><b
      >${typeof value === 'number' ? number(value, Math.abs(value) < 10 ? 1 : 0) : t.notReported}<small>
        ${typeof value === 'number' ? unit : ''}</small
      ></b
    ></span
  >`;
}

/** The value at a moment: that of the last sample before it. */
function valueAt(samples: readonly Sample[], moment_ms: number | null) {
  return samples.findLast(({ time_ms, value }) => value !== null && time_ms <= (moment_ms ?? Infinity))
    ?.value;
}

const day_ms = 86_400_000;

function axisText(time_ms: number, span_ms: number) {
  return clock(time_ms, span_ms > 2 * day_ms ? { isDay: true } : { isTime: true });
}

function scaleOf(
  lines: readonly Line[],
  { isFree = false, top_value = 10 }: About,
): { readonly low: number; readonly step: number } {
  const values = lines.flatMap(({ samples }) => samples.flatMap(({ value }) => value ?? []));
  const least = values.reduce((a, b) => Math.min(a, b), isFree ? (values[0] ?? 0) : 0);
  const most = values.reduce((a, b) => Math.max(a, b), isFree ? (values[0] ?? 0) : top_value);
  const step = roundUp(Math.max(isFree ? 4 : 0, most - least) / ticks);
  const low = Math.floor(least / step) * step;
  return low + step * ticks >= most ? { low, step } : { low, step: roundUp((most - low) / ticks) };
}

/** The lines as sentences, for those who do not see the picture. */
function describe(lines: readonly Line[], unit: string) {
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

/** The smallest of 1, 2, 2.5, 5, 10, 20, ... that is not below `value`. */
function roundUp(value: number) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= value) ?? 10);
}
