/** The kit: what needs attention, its state, its links and its backlog. */
import { duration, freshness, isKitReachable, partFreshness } from '../world/age.js';
import { attentionList } from './attention.js';
import { placeText } from '../world/geo.js';
import { html } from './html.js';
import { age, fact, name, section, state } from './marks.js';
import { spark } from './spark.js';
import { amount, plain, rate, size } from '../world/text.js';
import { drainsIn } from '../world/world.js';

/** @import { KitNow, Link, View } from '../types.d.ts' */

/** A kit with a broker reports its queue when it connects; an older report counts as old. */
const queue_limit_ms = 60_000;
const latency = { what: 'Latency while this page was open', unit: 'ms' };

/** @param {View} view */
export function attentionView(view) {
  const list = attentionList(view);
  const title = list.length === 0 ? 'Attention' : `Attention: ${list.length}`;
  const content =
    list.length === 0
      ? html`<p>${view.world.kit ? '✔ Nothing needs attention' : 'Waiting for the first report'}</p>`
      : html`<ul>
          ${list.map(({ key, text }) => html`<li key=${key}><span aria-hidden="true">▲</span> ${name(text)}</li>`)}
        </ul>`;
  // The height is fixed, so that nothing below moves under a finger.
  return section(
    'attention',
    title,
    html`<div class="attention" tabindex="0" role="region" aria-label="Attention list">${content}</div>`,
  );
}

/** @param {View} view */
export function kitView(view) {
  const { kit, queue } = view.world;
  if (!kit) return section('kit', 'Kit', html`<p>Not reported yet</p>`);
  const ofClients = kit.times['clients'] ? partFreshness('clients', view) : undefined;
  return section(
    'kit',
    'Kit',
    html`<dl class="facts">
      ${fact('Battery', batteryText(kit), kit.battery === null ? undefined : partFreshness('battery', view))}
      ${fact('Position', positionText(kit), kit.location ? partFreshness('location', view) : undefined)}
      ${gatewayFacts(kit, view)} ${fact('Local devices', String(kit.clients.length), ofClients)}
      ${fact('Speed test', speedtestText(kit, view))}
      ${queue?.software ? fact('Software', plain(queue.software)) : ''}
    </dl>`,
  );
}

/**
 * @param {KitNow} kit
 * @param {View} view
 */
function gatewayFacts({ gateway }, view) {
  if (!gateway) return fact('Gateway', 'not reported');
  const { model, cpu_pct, mem_pct, uptime_s } = gateway;
  const freshness = partFreshness('gateway', view);
  return html`${fact('Gateway', html`${name(gateway.name)}${model ? html`, ${name(model)}` : ''}`)}
  ${fact('CPU', amount(cpu_pct, ' %'), freshness)} ${fact('Memory', amount(mem_pct, ' %'), freshness)}
  ${fact('Up for', uptime_s ? duration(uptime_s * 1_000) : 'not reported', freshness)}`;
}

/** @param {KitNow} kit */
function batteryText({ battery, battery_charging }) {
  if (battery === null) return 'no sensor';
  const charging = battery_charging === null ? '' : battery_charging ? ', charging' : ', not charging';
  return `${Math.round(battery)} %${charging}`;
}

/** @type {Readonly<Record<string, string>>} */
const sources = {
  satellite: 'satellite',
  satellite_cached: 'last satellite fix',
  cellular: 'from the cell network',
  manual: 'entered by hand',
};

/** @param {KitNow} kit */
function positionText({ location }) {
  if (!location) return 'not reported';
  const { latitude, longitude, source, kit_location } = location;
  return html`<span class="place">${placeText({ lat: latitude, lon: longitude })}</span>
    ${kit_location ? html` ${name(kit_location)},` : ''} ${sources[source] ?? plain(source)}`;
}

/**
 * @param {KitNow} kit
 * @param {View} view
 */
function speedtestText({ speedtest }, { time_ms }) {
  if (!speedtest) return 'not run yet';
  const { download_mbps, upload_mbps, timestamp } = speedtest;
  return `${amount(download_mbps, '')} / ${amount(upload_mbps, ' Mb/s')}, ${duration(time_ms - Date.parse(timestamp))} ago`;
}

/** @param {View} view */
export function linksView(view) {
  const { kit } = view.world;
  const freshness = partFreshness('wans', view);
  const content =
    !kit || kit.wans.length === 0
      ? html`<p>No link reported</p>`
      : html`<ul class="rows">
          ${kit.wans.map((link) => linkRow(link, view, freshness))}
        </ul>`;
  return section('links', html`Links ${kit && kit.wans.length > 0 ? age(freshness) : ''}`, content);
}

/**
 * @param {Link} link
 * @param {View} view
 * @param {import('../types.d.ts').Freshness} freshness
 */
function linkRow(link, view, freshness) {
  const { isp, type, status, ip } = link;
  const word = status ?? 'unknown';
  const about = [type, ip].filter(Boolean).join(', ');
  return html`<li key=${link.name} class=${freshness.isOld ? 'row is-old' : 'row'}>
    <p class="head">
      <b>${name(isp ?? link.name)}</b>
      ${state(word === 'online' && !isKitReachable(view) ? 'was online' : word)}
    </p>
    <p class="sub">${isp ? html`${name(link.name)}, ` : ''}${plain(about)}</p>
    <p class="numbers">
      ${numbersOf(link).map((text) => html`<span key=${text}>${text}</span>`)}${spark(view.world.latencies.get(link.name) ?? [], latency)}
    </p>
  </li>`;
}

/**
 * Returns the figures of the link.
 * @param {Link} link
 * @returns {readonly string[]}
 */
function numbersOf({ rx_bps, tx_bps, latency_ms, packet_loss_pct, usage }) {
  /** @type {(value: number | null | undefined, text: (value: number) => string) => readonly string[]} */
  const known = (value, text) => (value === null || value === undefined ? [] : [text(value)]);
  const numbers = [
    ...known(rx_bps, (bps) => `↓ ${rate(bps)}`),
    ...known(tx_bps, (bps) => `↑ ${rate(bps)}`),
    ...known(latency_ms, (ms) => `${Math.round(ms)} ms`),
    ...known(packet_loss_pct, (pct) => `loss ${Number(pct.toFixed(1))} %`),
    ...known(sum(usage?.month_rx_gb, usage?.month_tx_gb), (gb) => `month ${gb.toFixed(1)} GB`),
  ];
  return numbers.length === 0 ? ['no figures reported'] : numbers;
}

/**
 * @param {number | null | undefined} a
 * @param {number | null | undefined} b
 */
function sum(a, b) {
  if (typeof a !== 'number' && typeof b !== 'number') return null;
  return (a ?? 0) + (b ?? 0);
}

/** @param {View} view */
function drainText({ world, time_ms }) {
  if (world.queue?.waiting_rows === 0) return 'empty';
  const drain_ms = drainsIn(world, time_ms);
  return drain_ms === undefined ? 'not known' : `about ${duration(drain_ms)}`;
}

/**
 * A stored message is acknowledged within a second.
 * @param {View} view
 */
function storedText({ world, time_ms }) {
  const last_seen = world.kit?.last_seen ?? null;
  return last_seen === null ? 'nothing yet' : `${duration(time_ms - Date.parse(last_seen))} ago`;
}

/** @param {View} view */
export function queueView(view) {
  const { queue } = view.world;
  if (!queue) return section('uplink', 'Uplink queue', html`<p>Not reported yet</p>`);
  const { waiting_rows, waiting_bytes, oldest, received, missing, dropped, refused } = queue;
  const since = queue.since ? ` for ${duration(view.time_ms - Date.parse(queue.since))}` : '';
  const word = queue.online ? (isKitReachable(view) ? 'connected' : 'was online') : 'offline';
  const freshnessOfReport = freshness(queue.as_of, queue_limit_ms, view, isKitReachable(view));
  const none = waiting_rows === null ? 'not reported' : 'none';
  const bytes = waiting_bytes === null ? '' : ` (${size(waiting_bytes)})`;
  return section(
    'uplink',
    'Uplink queue',
    html`<dl class="facts">
      ${fact('Kit to service', html`${state(word)}${since}${queue.reason ? html`: ${name(queue.reason)}` : ''}`)}
      ${fact('Buffered on the kit', waiting_rows === null ? 'not reported' : `${waiting_rows} messages${bytes}`, freshnessOfReport)}
      ${fact('Oldest waiting', oldest === null ? none : duration(view.time_ms - Date.parse(oldest)), freshnessOfReport)}
      ${fact('Empty in', drainText(view), freshnessOfReport)} ${fact('Received', `${received} messages`)}
      ${fact('Last stored here', storedText(view))} ${fact('In flight or missing', String(missing))}
      ${fact('Dropped by the kit', String(dropped))} ${fact('Unreadable', String(refused))}
    </dl>`,
  );
}
