/** The links of a kit in detail: latency, availability, data, interruptions, the queue, the speed test. */
import { isKitReachable } from '../../world/age.ts';
import { observedIn } from '../../world/history/cells.ts';
import { eventsNow, interruptionsOf, type Interval } from '../../world/history/events.ts';
import { seriesNow, spanOf, type SeriesNow, type Span } from '../../world/history/history.ts';
import { isRecord } from '../../world/json.ts';
import { clock, number, quantity, zoneName } from '../../world/units.ts';
import { t } from '../../words/words.ts';
import { lockReason } from '../command/about.ts';
import { outcome } from '../command/command-view.ts';
import { completenessCard } from '../history/completeness-card.ts';
import { emptyText, pastBox, rangeChips, scrubber, spanText } from '../history/range.ts';
import { lostBox } from '../overview/overview-view.ts';
import { chart } from '../parts/chart.ts';
import { html } from '../parts/html.ts';
import { card, name, state } from '../parts/marks.ts';
import { dataCard } from './data-card.ts';
import { linksCard, linkState, linkTitle } from './link-row.ts';
import { queueCard } from './queue-card.ts';
import { strip } from './strip.ts';
import type { Link, Sample, View } from '../../types.d.ts';

const lines_max = 4;
/** Links of one question: the service takes 20 numbers. */
const asked_max = 10;
const interruptions_shown_max = 50;

interface Past {
  readonly span: Span;
  readonly series: SeriesNow | undefined;
  readonly gaps: readonly Interval[];
  readonly isCut: boolean;
}

export function linksScreen(view: View) {
  const past = pastOf(view);
  return {
    heading: { title: t.nav.links, isKit: true, tools: html`<span class="age">${t.zone(zoneName())}</span>` },
    body: html`<div class="page aside">
      <div class="column">
        ${lostBox(view)}${pastBox(view)}
        <h1 class="hero only-phone">${t.nav.links}</h1>
        ${linksCard(view)} ${rangeChips(view)} ${latencyCard(view, past)} ${stripsCard(view, past)}
      </div>
      <div class="column">
        ${dataCard(view)} ${interruptions(view, past)} ${completenessCard(view)} ${queueCard(view)}
        ${speedCard(view)}
      </div>
    </div>`,
  };
}

/** What the history has of the links. A name that the service would read as a path or a list is not asked for. */
function pastOf(view: View): Past {
  const span = spanOf(view);
  if (span.hours === 0) return { span, series: undefined, gaps: [], isCut: false };
  const names = (view.world.kit?.wans ?? [])
    .map(({ name: wire }) => wire)
    .filter((wire) => !/[.,]/u.test(wire))
    .slice(0, asked_max);
  const selected = names.flatMap((wire) => [latencyOf(wire), lossOf(wire)]);
  const series = selected.length === 0 ? undefined : seriesNow(view, 'links', selected, span);
  const { events, isCut } = eventsNow(view, { name: 'links', types: ['link_status'], span });
  return { span, series, gaps: interruptionsOf(events), isCut };
}

function latencyOf(wire: string) {
  return `kit:wans.${wire}.latency_ms`;
}

function lossOf(wire: string) {
  return `kit:wans.${wire}.packet_loss_pct`;
}

function latencyCard(view: View, { span, series, gaps }: Past) {
  const wans = view.world.kit?.wans ?? [];
  const lines = wans
    .map((link) => ({
      wire: link.name,
      title: linkTitle(link),
      samples:
        (series ? series.samples.get(latencyOf(link.name)) : view.world.latencies.get(link.name)) ?? [],
      isInUse: linkState(link, view) === 'inUse',
    }))
    .filter(({ samples }) => samples.some(({ value }) => value !== null))
    .sort((a, b) => Number(b.isInUse) - Number(a.isInUse))
    .slice(0, lines_max);
  if (lines.length === 0 && !series) return '';
  const silences = gaps
    .filter((gap) => gap.name === lines[0]?.wire && (gap.until_ms ?? span.to_ms) > span.from_ms)
    .map((gap) => [Math.max(gap.since_ms, span.from_ms), gap.until_ms ?? span.to_ms] as const);
  return card(
    'latency',
    t.links.latency,
    lines.length === 0 && series
      ? html`<p class="empty">${emptyText(series)}</p>`
      : html`${chart({ ...span, lines, unit: 'ms', gap_ms: series?.gap_ms, ...(series && { silences }), moment_ms: view.choices.moment_ms, isLive: span.hours <= 24 })}
        ${scrubber(view, span)}`,
    html`<span class="age">${span.hours === 0 ? t.links.window : spanText(span.hours)}</span>`,
  );
}

function stripsCard(view: View, past: Past) {
  const wans = view.world.kit?.wans ?? [];
  if (wans.length === 0) return '';
  const { from_ms, to_ms, hours } = past.span;
  return card(
    'availability',
    t.links.availability,
    html`<ul class="rows">
      ${wans.map((link) => {
        const samples = upSamples(link, view, past);
        const share = past.series ? answeredOf(samples) : (link.availability_pct ?? answeredOf(samples));
        return html`<li key=${link.name} class="strip-row">
          <span class="nm"
            ><b>${name(linkTitle(link))}</b> <small>${t.state[linkState(link, view)]}</small></span
          >
          <b class="pc">${share === null ? t.notReported : quantity(share, '%', 1)}</b>
          ${strip(samples, from_ms, to_ms)}
        </li>`;
      })}
    </ul>`,
    html`<span class="age">${hours === 0 ? t.links.stripHint : t.history.lowHint}</span>`,
  );
}

/** The share of the observed time in which the link answered, in percent; null: it was not observed. */
function answeredOf(samples: readonly Sample[]) {
  const shares = samples.flatMap(({ value }) => value ?? []);
  return shares.length === 0 ? null : (100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length;
}

/** Whether the link answered, over time: from the interruptions and from when it was observed at all. */
function upSamples({ name: wire }: Link, { world }: View, { span, series, gaps }: Past) {
  if (!series) return world.series.get(`up ${wire}`) ?? [];
  return observedIn({
    observed: [
      ...(series.samples.get(latencyOf(wire)) ?? []),
      ...(series.samples.get(lossOf(wire)) ?? []),
    ].map((sample) => sample.time_ms),
    gap_ms: series.gap_ms,
    gaps: gaps.filter((gap) => gap.name === wire),
    from_ms: span.from_ms,
    to_ms: span.to_ms,
  });
}

function interruptions({ world, log }: View, { span, gaps, isCut }: Past) {
  const titles = new Map((world.kit?.wans ?? []).map((link) => [link.name, linkTitle(link)]));
  const seen =
    span.hours === 0
      ? log.entries.filter(({ key }) => key.startsWith('link '))
      : gaps.map((gap) => ({ ...gap, key: gap.name, title: titles.get(gap.name) ?? gap.name }));
  const none = span.hours === 0 ? t.links.noInterruptions : t.history.noInterruptions;
  const range = span.hours === 0 ? t.links.sinceOpened : spanText(span.hours);
  return card(
    'interruptions',
    t.links.interruptions,
    seen.length === 0
      ? html`<p class="empty">${none}</p>`
      : html`<ul class="rows">
            ${seen.slice(0, interruptions_shown_max).map((each) => interruptionRow(each))}
          </ul>
          ${(isCut || seen.length > interruptions_shown_max) && html`<p class="cap pad">${t.history.cut(Math.min(seen.length, interruptions_shown_max))}</p>`}`,
    html`<span class="age">${range}</span>`,
  );
}

function interruptionRow({
  key,
  title,
  reason = '',
  since_ms,
  until_ms,
}: {
  readonly key: string;
  readonly title: string;
  readonly reason?: string;
  readonly since_ms: number;
  readonly until_ms: number | null;
}) {
  return html`<li key=${`${key} ${since_ms}`} class="event">
    <time>${clock(since_ms)}</time
    ><span>${name(title)}${reason !== '' && html`<span class="cap">${name(reason)}</span>`}</span
    >${until_ms === null ? state('offline') : html`<span class="age">${t.lasted(until_ms - since_ms)}</span>`}
  </li>`;
}

function speedCard(view: View) {
  const { world, time_ms } = view;
  const test = world.kit?.speedtest;
  const runner = [...world.assets.values()].flatMap((asset) => {
    const command = world.commands
      .get(asset.id)
      ?.find((each) => each.name === 'speedtest' || each.name === 'run_speedtest');
    return command ? [{ asset, command }] : [];
  })[0];
  if (!test && !runner) return '';
  const isLocked =
    runner === undefined || lockReason(view, runner.asset) !== undefined || !isKitReachable(view);
  const run = () => (runner && !isLocked ? view.act.order({ ...runner, payload: {} }) : undefined);
  const result = runner ? outcome(runner.asset, runner.command, view) : '';
  const figures = isRecord(test)
    ? t.links.speed({
        down: figure(test.download_mbps),
        up: figure(test.upload_mbps),
        latency: figure(test.latency_ms),
      })
    : t.links.notRun;
  return html`<section class="card pad" id="speedtest" aria-labelledby="speedtest-title">
    <div class="head">
      <div>
        <h2 class="sec" id="speedtest-title">${t.links.speedTest}</h2>
        <p class="cap">${figures}</p>
        ${test && html`<p class="age">${t.links.testedAgo(time_ms - Date.parse(test.timestamp))}</p>`}
      </div>
      ${runner && html`<button type="button" class="btn" aria-disabled=${String(isLocked)} onClick=${run}>${t.links.run}</button>`}
    </div>
    ${result && html`<div class="outcome" role="status">${result}</div>`}
  </section>`;
}

function figure(value: number | null | undefined) {
  return typeof value === 'number' ? number(value) : t.notReported;
}
