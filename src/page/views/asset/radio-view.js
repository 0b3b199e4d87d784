/** The page of a radio: its peers first, weakest first, then its channel and power. */
import { feedFreshness } from '../../world/age.js';
import { isRecord } from '../../world/json.js';
import { rate } from '../../world/bytes.js';
import { plain } from '../../world/text.js';
import { number, quantity } from '../../world/units.js';
import { fieldOf, numberOf } from '../../world/world.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { age, card, fact, name } from '../parts/marks.js';
import { isWideNow } from '../parts/wide.js';
import { spark } from '../parts/spark.js';

/** @import { LiveAsset, View } from '../../types.d.ts' */
/** @import { Shared } from './drone-view.js' */

const peers_shown_max = 64;
/** The scale of the signal bar: from no link to a strong one. */
const dbm_low = -95;
const dbm_high = -45;
const dbm_weak = -78;

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @param {Shared} shared
 */
export function radioBody(asset, view, { first, past, commands, rest }) {
  const isWide = isWideNow();
  return html`<div class="page two">
    <div class="column">${first}${peersCard(asset, view)}${channelCard(asset, view)}${isWide && past}</div>
    <div class="column">${commands}${!isWide && past}${rest}</div>
  </div>`;
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function peersCard(asset, view) {
  const mesh = view.world.feeds.get(asset.id)?.['mesh'];
  const list = fieldOf(mesh, 'neighbours');
  const peers = (Array.isArray(list) ? list.filter(isRecord) : []).sort((a, b) => rssiOf(a) - rssiOf(b));
  const strength = spark(view.world.series.get(`${asset.id} radio`) ?? [], {
    what: t.radio.signal,
    unit: 'dBm',
  });
  return card(
    'peers',
    t.radio.title,
    html`${
      peers.length === 0
        ? html`<p class="empty">${mesh ? t.radio.noPeers : t.radio.notReported}</p>`
        : html`<ul class="rows">
            ${peers.slice(0, peers_shown_max).map((peer) => peerRow(peer))}
          </ul>`
    }
    ${strength && html`<div class="lanes"><span>${t.radio.signal}</span>${strength}</div>`}`,
    mesh ? age(feedFreshness(asset, 'mesh', view)) : '',
  );
}

/** @param {Readonly<Record<string, unknown>>} peer */
function rssiOf(peer) {
  return typeof peer['rssi'] === 'number' ? peer['rssi'] : Number.NEGATIVE_INFINITY;
}

/** @param {Readonly<Record<string, unknown>>} peer */
function peerRow(peer) {
  const rssi = rssiOf(peer);
  const share = Math.max(0.02, Math.min(1, (rssi - dbm_low) / (dbm_high - dbm_low)));
  const facts = [
    typeof peer['snr_db'] === 'number' ? t.radio.snr(number(peer['snr_db'])) : '',
    typeof peer['tx_rate_bps'] === 'number' ? `↑\u00a0${rate(peer['tx_rate_bps'])}` : '',
    typeof peer['rx_rate_bps'] === 'number' ? `↓\u00a0${rate(peer['rx_rate_bps'])}` : '',
    peer['hops'] === 'relay' ? t.radio.relay : '',
  ].filter(Boolean);
  return html`<li key=${String(peer['mac'])} class="peer">
    <b>${name(plain(peer['name'] ?? peer['mac']))}</b>
    <span class="num-s">${Number.isFinite(rssi) ? quantity(rssi, 'dBm') : t.notReported}</span>
    <span class="cap"
      >${facts.join(', ')}${rssi < dbm_weak && Number.isFinite(rssi) ? `, ${t.radio.weak}` : ''}</span
    >
    <svg
      class=${rssi < dbm_weak ? 'meter weak' : 'meter'}
      viewBox="0 0 100 8"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect class="all" width="100" height="8" />
      <rect width=${Number.isFinite(rssi) ? share * 100 : 0} height="8" />
    </svg>
  </li>`;
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function channelCard(asset, view) {
  const { link, status } = view.world.feeds.get(asset.id) ?? {};
  if (!link && !status) return '';
  const freshness = link ? feedFreshness(asset, 'link', view) : undefined;
  const group = freshness && { ...freshness, isNamed: true };
  /** @type {(value: number | undefined, unit: string, digits?: number) => string} */
  const amount = (value, unit, digits = 0) =>
    value === undefined ? t.notReported : quantity(value, unit, digits);
  const channel = numberOf(link, 'channel');
  const facts = [
    fact(
      t.radio.channel,
      channel === undefined ? t.notReported : `${channel} (${amount(numberOf(link, 'freq_mhz'), 'MHz')})`,
      group,
    ),
    fact(t.radio.width, amount(numberOf(link, 'bandwidth_mhz'), 'MHz'), group),
    fact(t.radio.power, amount(numberOf(link, 'txpower_dbm'), 'dBm'), group),
    fact(t.radio.noise, amount(numberOf(link, 'noise'), 'dBm'), group),
    ...(numberOf(link, 'busy_pct') === undefined
      ? []
      : [fact(t.radio.busy, amount(numberOf(link, 'busy_pct'), '%'), group)]),
    ...(numberOf(status, 'temperature_c') === undefined
      ? []
      : [fact(t.radio.temperature, amount(numberOf(status, 'temperature_c'), '°C'))]),
  ];
  return card(
    'channel',
    t.radio.channelTitle,
    html`<dl class="facts small pad">${facts}</dl>`,
    freshness ? age(freshness) : '',
  );
}
