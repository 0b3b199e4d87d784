/** The links of a kit in detail: latency, availability, data, interruptions, the queue, the speed test. */
import { isKitReachable, partFreshness, queueFreshness } from '../../world/age.ts';
import { duration, clock, number, quantity, zoneName, size } from '../../units.ts';
import { observedIn, cells, cellsOf } from '../../world/history/cells.ts';
import { eventsNow, interruptionsOf, type Interval } from '../../world/history/events.ts';
import { seriesNow, spanOf, type SeriesNow, type Span, countsOf } from '../../world/history/history.ts';
import { isRecord, field, own, textIn } from '../../json.ts';
import { t } from '../../words/words.ts';
import { lockReason } from '../command/about.ts';
import { outcome } from '../command/command-view.ts';
import { emptyText, pastBox, rangeChips, scrubber, spanText } from '../history/range.ts';
import { age, lostBox, card, name, state, fact } from '../parts/marks.ts';
import { meter } from '../parts/meter.ts';
import { chart } from '../parts/chart.ts';
import { html } from '../parts/html.ts';
import { linksCard, linkState, linkTitle, monthGb } from './link-row.ts';
import type { Link, Sample, View } from '../../types.d.ts';
import { plain } from '../../world/text.ts';
import { addressOf } from '../../world/route.ts';
import { shape } from '../parts/icon.ts';
import { drainsIn } from '../../world/world.ts';

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
        ${linksCard(view)}
        <a key="align" class="btn small align-btn" href=${addressOf('align', view.choices.kit_id)}
          >${t.nav.align}</a
        >
        ${rangeChips(view)} ${latencyCard(view, past)} ${stripsCard(view, past)}
      </div>
      <div class="column">
        ${dataCard(view)} ${interruptions(view, past)} ${completenessCard(view)} ${queueCard(view)}
        ${speedCard(view)} ${clientsCard(view)}
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
        ${test && html`<p class="age">${t.ago(time_ms - Date.parse(test.timestamp))}</p>`}
      </div>
      ${runner && html`<button type="button" class="btn" aria-disabled=${String(isLocked)} onClick=${run}>${t.links.run}</button>`}
    </div>
    ${result && html`<div class="outcome" role="status">${result}</div>`}
  </section>`;
}

function figure(value: number | null | undefined) {
  return typeof value === 'number' ? number(value) : t.notReported;
}

/** Whether every message of the kit has arrived; else how many are missing, and why. And from when on they are still kept. */
function completenessCard(view: View) {
  if (view.history.state(view) !== 'on') return '';
  const { value } = view.history.completeness(view);
  const { received, missing, reasons, more } = countsOf(value);
  const oldest = field(value, 'oldest');
  const position_ms = Date.parse(textIn(field(oldest, 'position')));
  const values_ms = Date.parse(textIn(field(oldest, 'feed')));
  const since_ms = Date.parse(textIn(field(value, 'since')));
  const first =
    received === 0
      ? html`<p class="empty">${t.history.noMessages}</p>`
      : missing === 0
        ? html`<p class="line state good">${shape('on')}<span>${t.history.isComplete}</span></p>`
        : html`<p class="line state warn">${shape('warn')}<span>${t.history.incomplete(missing)}</span></p>
            <ul class="rows">
              ${[...reasons].map(([why, n]) => html`<li key=${why} class="line">${t.history.because({ n, why: sentenceOf(why) })}</li>`)}
              ${more > 0 && html`<li class="line">${t.history.moreGaps(more)}</li>`}
            </ul>`;
  return card(
    'completeness',
    t.history.complete,
    html`${first} ${position_ms > 0 && html`<p class="cap line">${t.history.positionsFrom(position_ms)}</p>`}
      ${values_ms > 0 && html`<p class="cap line">${t.history.valuesFrom(values_ms)}</p>`}
      <p class="cap line last">${t.history.since({ ms: since_ms, age_ms: view.time_ms - since_ms })}</p>`,
  );
}

function sentenceOf(why: string) {
  if (why === '') return t.history.unexplained;
  return why
    .split(', ')
    .map((each) => own(t.history.reason, each) ?? plain(each))
    .join(', ');
}

const day_ms = 86_400_000;
const warned_share = 0.8;

/** Data of this month by link, with the limit and a forecast where a limit is set. */
function dataCard({ world, time_ms }: View) {
  const rows = (world.kit?.wans ?? []).flatMap((link) => {
    const gb = monthGb(link);
    return gb === null ? [] : [{ link, gb }];
  });
  if (rows.length === 0) return '';
  return card(
    'data',
    t.data.title,
    html`<div class="data">${rows.map(({ link, gb }) => dataRow(link, gb, time_ms))}</div>`,
    html`<span class="age">${t.data.day(new Date(time_ms).getUTCDate())}</span>`,
  );
}

function dataRow(link: Link, gb: number, time_ms: number) {
  const limit = field(link.usage, 'month_limit_gb');
  const limit_gb = typeof limit === 'number' && limit > 0 ? limit : undefined;
  const share = limit_gb === undefined ? undefined : Math.min(1, gb / limit_gb);
  const full_ms = limit_gb === undefined ? undefined : fullAt(gb, limit_gb, time_ms);
  const isWarned = full_ms !== undefined || (share ?? 0) >= warned_share;
  return html`<div key=${link.name} class="data-row">
    <span>${name(linkTitle(link))}</span>
    <b
      >${number(gb, gb < 100 ? 1 : 0)}
      <span class="cap">${limit_gb === undefined ? t.data.noLimit : t.data.of(number(limit_gb))}</span></b
    >
    ${share !== undefined && meter(share, isWarned)}
    ${full_ms !== undefined && html`<span class="state warn">${shape('warn')}<span>${t.data.fullOn(full_ms)}</span></span>`}
  </div>`;
}

/** When the limit is reached at the mean rate of this month; undefined: not within it. */
function fullAt(gb: number, limit_gb: number, time_ms: number): number | undefined {
  const now = new Date(time_ms);
  const first_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  const end_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const passed_ms = time_ms - first_ms;
  // The first day is a poor estimate of the rate of a month.
  if (passed_ms < day_ms || gb <= 0) return undefined;
  const full_ms = first_ms + (limit_gb / gb) * passed_ms;
  return full_ms < end_ms ? Math.max(full_ms, time_ms) : undefined;
}

/** The uplink queue: the backlog on the kit, and what this service has received of it. */
function queueCard(view: View) {
  const { queue } = view.world;
  if (!queue) return '';
  const { waiting_rows, waiting_bytes, oldest, received, missing, dropped, refused, software } = queue;
  const freshness = queueFreshness(view);
  const bytes = typeof waiting_bytes === 'number' ? ` (${size(waiting_bytes)})` : '';
  const waiting =
    typeof waiting_rows === 'number'
      ? `${number(waiting_rows)}${waiting_rows > 0 ? bytes : ''}`
      : t.notReported;
  return card(
    'uplink',
    t.queue.title,
    html`<p class="pad queue-state">${stateOf(view)}</p>
      <dl class="facts small pad">
        ${fact(t.queue.waiting, waiting, freshness)}
        ${fact(t.queue.oldest, oldest ? duration(view.time_ms - Date.parse(oldest)) : typeof waiting_rows === 'number' ? t.queue.none : t.notReported, freshness)}
        ${fact(t.queue.emptyIn, drainTime(view), freshness)} ${fact(t.queue.received, number(received))}
        ${fact(t.queue.lastStored, storedText(view))} ${fact(t.queue.missing, number(missing))}
        ${fact(t.queue.dropped, number(dropped))} ${fact(t.queue.rejected, number(refused))}
        ${software ? fact(t.queue.software, plain(software)) : ''}
      </dl>`,
  );
}

function stateOf(view: View) {
  const { queue } = view.world;
  const word = queue?.online ? (isKitReachable(view) ? 'online' : 'wasOnline') : 'offline';
  const since = queue?.since ? t.queue.for(duration(view.time_ms - Date.parse(queue.since))) : '';
  return html`${state(word)}
    <span class="cap">${since}${queue?.reason ? html`: ${name(queue.reason)}` : ''}</span>`;
}

/** A stored message is acknowledged within a second. */
function storedText({ world, time_ms }: View) {
  const last_seen = world.kit?.last_seen;
  return last_seen ? t.ago(time_ms - Date.parse(last_seen)) : t.queue.nothing;
}

const cell_px = 8;

/** The availability strip: 96 cells; full: all answered, half: some, hatched: none, low: not observed. */
function strip(samples: readonly Sample[], from_ms: number, to_ms: number) {
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
/** How long until the queue is empty, as a separate value. */
function drainTime({ world, time_ms }: View): string {
  if (world.queue?.waiting_rows === 0) return t.queue.none;
  const drain_ms = drainsIn(world, time_ms);
  return drain_ms === undefined ? t.queue.notKnown : t.queue.about(duration(drain_ms));
}

const clients_shown_max = 100;
const ipv4 = /^\d{1,3}(?:\.\d{1,3}){3}$/u;
const ipv6 = /^[\da-f:]+$/iu;

/** Devices on the network of the kit, with the address of their own pages: those open on that network only. */
function clientsCard(view: View) {
  const clients = view.world.kit?.clients ?? [];
  if (clients.length === 0) return '';
  const shown = clients.slice(0, clients_shown_max);
  return card(
    'clients',
    t.clients.title,
    html`<ul class="rows">
        ${shown.map(({ name: text, ip, mac, type }) => {
          const href = !ip ? '' : ipv4.test(ip) ? `http://${ip}/` : ipv6.test(ip) ? `http://[${ip}]/` : '';
          return html`<li key=${mac} class="client">
            <span
              ><b>${name(text || mac)}</b
              ><span class="cap"
                >${[ip, text ? mac : '', own(t.clients.type, type ?? '') ?? type]
                  .filter(Boolean)
                  .map((part) => plain(part))
                  .join(', ')}</span
              ></span
            >
            ${href !== '' && html`<a class="btn small" href=${href} target="_blank" rel="noreferrer" aria-label=${t.clients.openOf(plain(text || ip))}>${t.clients.open}</a>`}
          </li>`;
        })}
      </ul>
      <p class="cap line last">
        ${clients.length > shown.length && `${t.attention.more(clients.length - shown.length)}. `}${t.clients.hint}
      </p>`,
    age(partFreshness('clients', view)),
  );
}
