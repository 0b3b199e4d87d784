/** The course of an asset's figures, and what a camera saw: from the history. */
import { own } from '../../json.ts';
import { other_detections } from '../../world/detections.ts';
import { detectionsOf, eventsNow, intervalsOf, type Interval } from '../../world/history/events.ts';
import { seriesNow, spanOf, type SeriesNow, type Span } from '../../world/history/history.ts';
import { plain } from '../../world/text.ts';
import { clock, heightIn } from '../../units.ts';
import { t } from '../../words/words.ts';
import { chart } from '../parts/chart.ts';
import { html } from '../parts/html.ts';
import { card } from '../parts/marks.ts';
import { emptyText, scrubber, spanText } from './range.ts';
import type { LiveAsset, Sample, View } from '../../types.d.ts';

interface Figure {
  readonly title: string;
  readonly unit: string;
  readonly fields: readonly { readonly select: string; readonly title: string }[];
  readonly isFree?: boolean;
  readonly top_value?: number;
  readonly isHeight?: boolean;
}

const plot_px = 150;
const detection_types = ['ai_detection', 'motion', ...other_detections];
const lane_px = 640;

/** The card of the history of an asset; empty where it has no figure that is kept, or there is no history. */
export function historyCard(asset: LiveAsset, view: View) {
  const span = spanOf(view);
  if (span.hours === 0) return '';
  const figures = figuresOf(asset);
  const isCamera = asset.type === 'camera';
  if (figures.length === 0 && !isCamera) return '';
  const series =
    figures.length === 0
      ? undefined
      : seriesNow(
          view,
          asset.id,
          figures.flatMap(({ fields }) => fields.map(({ select }) => select)),
          span,
        );
  const shown = series
    ? figures.filter(({ fields }) => fields.some(({ select }) => series.samples.get(select)?.length))
    : [];
  return card(
    'history',
    t.history.title,
    html`${isCamera && lanes(asset, view, span)}
    ${series && shown.length === 0 ? html`<p class="empty">${emptyText(series)}</p>` : ''}
    ${series && shown.map((figure) => figureView(figure, series, { view, span }))}
    ${!hasTrack(asset) && scrubber(view, span)}`,
    html`<span class="age">${spanText(span.hours)}</span>`,
  );
}

/** Whether the asset moves, so that its way is drawn on the map and the slider stands there. */
export function hasTrack({ type, protocol }: LiveAsset) {
  return type === 'drone' || type === 'vehicle' || protocol === 'partner';
}

function figuresOf({ id, type, protocol }: LiveAsset): readonly Figure[] {
  const of = (title: string, path: string, about: Partial<Figure> = {}): Figure => ({
    title,
    unit: '%',
    fields: [{ select: path.startsWith('kit:') ? path : `${id}:${path}`, title }],
    ...about,
  });
  const percent = { top_value: 100 };
  if (type === 'drone' && protocol !== 'partner')
    return [
      of(t.drone.altitude, 'gps.relative_alt_m', { unit: 'm', isHeight: true }),
      of(t.tile.battery, 'battery.remaining_pct', percent),
      of(t.drone.rssi, 'radio.rssi', { unit: '', isFree: true }),
    ];
  if (type === 'radio') {
    const fields = [...of(t.radio.signal, 'radio.rssi').fields, ...of(t.radio.noise, 'radio.noise').fields];
    return [
      { title: t.radio.signal, unit: 'dBm', fields, isFree: true },
      of(t.radio.busy, 'link.busy_pct', percent),
    ];
  }
  if (type !== 'gateway') return [];
  const fields = [
    ...of('CPU', 'kit:gateway.cpu_pct').fields,
    ...of(t.history.memory, 'kit:gateway.mem_pct').fields,
  ];
  return [
    of(t.tile.battery, 'kit:battery', percent),
    { title: t.tile.gateway, unit: '%', fields, ...percent },
  ];
}

function figureView(
  { title, unit, fields, isFree = false, top_value = 10, isHeight = false }: Figure,
  series: SeriesNow,
  { view, span }: { readonly view: View; readonly span: Span },
) {
  const height = heightIn(1);
  const lines = fields.map(({ select, title: line }) => {
    const samples = series.samples.get(select) ?? [];
    return {
      title: line,
      samples: isHeight ? samples.map((sample) => scaled(sample, height.value)) : samples,
    };
  });
  return html`<div key=${title} class="figure">
    ${chart({ ...span, lines, unit: isHeight ? height.unit : unit, gap_ms: series.gap_ms, h: plot_px, isFree, top_value, moment_ms: view.choices.moment_ms, isLive: span.hours <= 24 })}
  </div>`;
}

function scaled({ time_ms, value }: Sample, factor: number): Sample {
  return { time_ms, value: value === null ? null : value * factor };
}

/** One lane for each thing that the camera saw. */
function lanes(asset: LiveAsset, view: View, span: Span) {
  const read = eventsNow(view, {
    name: `seen ${asset.id}`,
    types: detection_types,
    asset_id: asset.id,
    span,
  });
  const seen = Map.groupBy(intervalsOf(read.events, detectionsOf), ({ name }) => name);
  if (seen.size === 0) return html`<p class="empty">${emptyText(read)}</p>`;
  const x = (time_ms: number) => ((time_ms - span.from_ms) / (span.to_ms - span.from_ms)) * lane_px;
  return html`<div class="lanes">
      ${[...seen].map(
        ([key, list]) =>
          html`<span>${wordOf(key)}</span
            ><svg
              class="lane"
              viewBox="0 0 ${lane_px} 22"
              preserveAspectRatio="none"
              role="img"
              aria-label=${laneText(key, list)}
            >
              <rect class="bed" width=${lane_px} height="22" />
              ${list.map(({ since_ms, until_ms }) => html`<rect key=${since_ms} class="seen" x=${x(since_ms).toFixed(1)} width=${Math.max(2, x(until_ms ?? view.time_ms) - x(since_ms)).toFixed(1)} height="22" />`)}
            </svg>`,
      )}
    </div>
    ${read.isCut && html`<p class="cap pad">${t.history.cut(read.events.length)}</p>`}`;
}

/** @param list newest first */
function laneText(key: string, list: readonly Interval[]) {
  return `${wordOf(key)}: ${list.length}, ${clock(list.at(-1)?.since_ms ?? 0)} – ${clock(list[0]?.since_ms ?? 0)}`;
}

function wordOf(key: string) {
  return own(t.seen, key) ?? own(t.history.event, key) ?? plain(key);
}
