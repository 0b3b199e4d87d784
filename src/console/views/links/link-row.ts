/** The links of a kit, one row each: what it is, its state, its figures. */
import { isKitReachable, partFreshness } from '../../world/age.ts';
import { duration, rate } from '../../units.ts';
import { addressOf } from '../../world/route.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfLink } from '../parts/icon.ts';
import { age, card, name, state, type StateWord } from '../parts/marks.ts';
import { spark } from '../parts/spark.ts';
import type { Link, View } from '../../types.d.ts';

export function linksCard(view: View) {
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

/** What people call the link: its provider, else its interface. */
export function linkTitle({ isp, name: text }: Link): string {
  return isp ? isp : text;
}

export function linkState({ status }: Link, view: View): StateWord {
  if (!status) return 'unknown';
  const isNow = isKitReachable(view);
  if (status === 'online') return isNow ? 'inUse' : 'wasInUse';
  if (status === 'standby') return isNow ? 'standby' : 'wasStandby';
  return isNow ? 'offline' : 'wasOffline';
}

export function linkRow(link: Link, view: View) {
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

function offlineText({ name: wire }: Link, { world, time_ms }: View) {
  const edge = world.linkEdges.get(wire);
  if (!edge || edge.status !== 'offline') return t.links.noFigures;
  return html`${duration(time_ms - edge.time_ms)}${edge.reason ? html`, ${name(edge.reason)}` : ''}`;
}

const space = '\u00a0';

/** Down and up, each with its arrow, the unit once where both have it; none where neither is reported. */
export function ratesOf({ rx_bps, tx_bps }: Pick<Link, 'rx_bps' | 'tx_bps'>): readonly string[] {
  const down = typeof rx_bps === 'number' ? rate(rx_bps) : '';
  const up = typeof tx_bps === 'number' ? rate(tx_bps) : '';
  const unit = up.slice(up.indexOf(space));
  const shown = up !== '' && down.endsWith(unit) ? down.slice(0, -unit.length) : down;
  return [shown && `↓${space}${shown}`, up && `↑${space}${up}`].filter(Boolean);
}

/** Down and up in one text; "not reported" when there is neither. */
function rateText(link: Link): string {
  return ratesOf(link).join(' ') || t.links.noRates;
}

/** Data of the month in GB of 10^9 bytes; null: not reported. */
export function monthGb({ usage }: Link): number | null {
  const rx = usage?.month_rx_gb;
  const tx = usage?.month_tx_gb;
  return typeof rx !== 'number' && typeof tx !== 'number' ? null : (rx ?? 0) + (tx ?? 0);
}
