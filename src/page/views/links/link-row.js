/** The links of a kit, one row each: what it is, its state, its figures. */
import { duration, isKitReachable, partFreshness } from '../../world/age.js';
import { addressOf } from '../../world/route.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { icon, iconOfLink } from '../parts/icon.js';
import { age, card, name, state } from '../parts/marks.js';
import { spark } from '../parts/spark.js';
import { rateText } from './figures.js';

/** @import { Link, View } from '../../types.d.ts' */
/** @import { StateWord } from '../parts/marks.js' */

/** @param {View} view */
export function linksCard(view) {
  const { world, choices } = view;
  const wans = world.kit?.wans ?? [];
  const aside = wans.length > 0 ? age(partFreshness('wans', view)) : '';
  const content =
    wans.length === 0
      ? html`<p class="empty">${t.links.none}</p>`
      : html`<ul class="rows">
          ${wans.map((link) => linkRow(link, view))}
        </ul>`;
  return card(
    'links',
    view.route.screen === 'links'
      ? t.nav.links
      : html`<a href=${addressOf('links', choices.kit_id)}>${t.nav.links}</a>`,
    content,
    aside,
  );
}

/**
 * What people call the link: its provider, else its interface.
 * @param {Link} link
 * @returns {string}
 */
export function linkTitle({ isp, name: text }) {
  return isp ? isp : text;
}

/**
 * @param {Link} link
 * @param {View} view
 * @returns {StateWord}
 */
export function linkState({ status }, view) {
  if (!status) return 'unknown';
  const isNow = isKitReachable(view);
  if (status === 'online') return isNow ? 'inUse' : 'wasInUse';
  if (status === 'standby') return isNow ? 'standby' : 'wasStandby';
  return isNow ? 'offline' : 'wasOffline';
}

/**
 * @param {Link} link
 * @param {View} view
 */
export function linkRow(link, view) {
  const { type, name: wire, latency_ms } = link;
  const word = linkState(link, view);
  const samples = view.world.latencies.get(wire) ?? [];
  return html`<li key=${wire} class=${word === 'inUse' ? 'link use' : 'link'}>
    <span class="ic">${icon(iconOfLink(type))}</span>
    <span class="nm"
      ><b>${name(linkTitle(link))}</b>${link.isp ? html` <small>${name(wire)}</small>` : ''}</span
    >
    ${state(word)}
    <span class="rate">${link.status === 'offline' ? offlineText(link, view) : rateText(link)}</span>
    <span class="ms"
      >${spark(samples, { what: t.links.latencyWhile, unit: 'ms', width: 70, low: 0 })}<b
        >${typeof latency_ms === 'number' ? `${Math.round(latency_ms)}\u00a0ms` : ''}</b
      ></span
    >
  </li>`;
}

/**
 * @param {Link} link
 * @param {View} view
 */
function offlineText({ name: wire }, { world, time_ms }) {
  const edge = world.linkEdges.get(wire);
  if (!edge || edge.status !== 'offline') return t.links.noFigures;
  return html`${duration(time_ms - edge.time_ms)}${edge.reason ? html`, ${name(edge.reason)}` : ''}`;
}
