/** The links of a kit in detail: latency, availability, data, interruptions, the queue, the speed test. */
import { isKitReachable } from '../../world/age.js';
import { isRecord } from '../../world/json.js';
import { clock, number, quantity, zoneName } from '../../world/units.js';
import { t } from '../../words/words.js';
import { lockReason } from '../command/about.js';
import { outcome } from '../command/command-view.js';
import { lostBox } from '../overview/overview-view.js';
import { html } from '../parts/html.js';
import { card, name, state } from '../parts/marks.js';
import { chart } from './chart.js';
import { dataCard } from './data-card.js';
import { linksCard, linkState, linkTitle } from './link-row.js';
import { queueCard } from './queue-card.js';
import { strip } from './strip.js';

/** @import { View } from '../../types.d.ts' */

const lines_max = 4;
const window_ms = 600_000;

/** @param {View} view */
export function linksScreen(view) {
  return {
    heading: { title: t.nav.links, isKit: true, tools: html`<span class="age">${t.zone(zoneName())}</span>` },
    body: html`<div class="page aside">
      <div class="column">
        ${lostBox(view)}
        <h1 class="hero only-phone">${t.nav.links}</h1>
        ${linksCard(view)} ${latencyCard(view)} ${stripsCard(view)}
      </div>
      <div class="column">${dataCard(view)} ${interruptions(view)} ${queueCard(view)} ${speedCard(view)}</div>
    </div>`,
  };
}

/** @param {View} view */
function latencyCard(view) {
  const wans = view.world.kit?.wans ?? [];
  const to_ms = view.time_ms;
  const lines = wans
    .map((link) => ({
      title: linkTitle(link),
      samples: view.world.latencies.get(link.name) ?? [],
      isInUse: linkState(link, view) === 'inUse',
    }))
    .filter(({ samples }) => samples.some(({ value }) => value !== null))
    .sort((a, b) => Number(b.isInUse) - Number(a.isInUse))
    .slice(0, lines_max);
  if (lines.length === 0) return '';
  return card(
    'latency',
    t.links.latency,
    chart({ lines, from_ms: to_ms - window_ms, to_ms, unit: 'ms' }),
    html`<span class="age">${t.links.window}</span>`,
  );
}

/** @param {View} view */
function stripsCard(view) {
  const wans = view.world.kit?.wans ?? [];
  if (wans.length === 0) return '';
  return card(
    'availability',
    t.links.availability,
    html`<ul class="rows">
      ${wans.map((link) => {
        const samples = view.world.series.get(`up ${link.name}`) ?? [];
        const share = typeof link.availability_pct === 'number' ? link.availability_pct : null;
        return html`<li key=${link.name} class="strip-row">
          <span class="nm"
            ><b>${name(linkTitle(link))}</b> <small>${t.state[linkState(link, view)]}</small></span
          >
          <b class="pc">${share === null ? t.notReported : quantity(share, '%', 1)}</b>
          ${strip(samples, view.time_ms - window_ms, view.time_ms)}
        </li>`;
      })}
    </ul>`,
    html`<span class="age">${t.links.stripHint}</span>`,
  );
}

/** @param {View} view */
function interruptions(view) {
  const seen = view.log.entries.filter(({ key }) => key.startsWith('link '));
  return card(
    'interruptions',
    t.links.interruptions,
    seen.length === 0
      ? html`<p class="empty">${t.links.noInterruptions}</p>`
      : html`<ul class="rows">
          ${seen.map(
            (entry) =>
              html`<li key=${`${entry.key} ${entry.since_ms}`} class="event">
                <time>${clock(entry.since_ms)}</time><span>${name(entry.title)}</span>${
                  entry.until_ms === null
                    ? state('offline')
                    : html`<span>${t.lasted(entry.until_ms - entry.since_ms)}</span>`
                }
              </li>`,
          )}
        </ul>`,
    html`<span class="age">${t.links.sinceOpened}</span>`,
  );
}

/** @param {View} view */
function speedCard(view) {
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

/** @param {number | null | undefined} value */
function figure(value) {
  return typeof value === 'number' ? number(value) : t.notReported;
}
