/** The page of a radio: its peers first, weakest first, then its channel and power. */
import { feedFreshness } from '../../world/age.ts';
import { isRecord } from '../../json.ts';
import { plain } from '../../world/text.ts';
import { number, quantity, rate } from '../../units.ts';
import { fieldOf, numberOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { age, card, fact, name, isWideNow } from '../parts/marks.ts';
import { meter } from '../parts/meter.ts';
import { spark } from '../parts/spark.ts';
import type { LiveAsset, View } from '../../types.d.ts';
import type { Shared } from './drone-view.ts';

const peers_shown_max = 64;
/** The scale of the signal bar: from no link to a strong one. */
const dbm_low = -95;
const dbm_high = -45;
const dbm_weak = -78;

export function radioBody(asset: LiveAsset, view: View, { first, past, commands, rest }: Shared) {
  const isWide = isWideNow();
  return html`<div class="page two">
    <div class="column">${first}${peersCard(asset, view)}${channelCard(asset, view)}${isWide && past}</div>
    <div class="column">${commands}${!isWide && past}${rest}</div>
  </div>`;
}

function peersCard(asset: LiveAsset, view: View) {
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

function rssiOf(peer: Readonly<Record<string, unknown>>) {
  return typeof peer['rssi'] === 'number' ? peer['rssi'] : Number.NEGATIVE_INFINITY;
}

function peerRow(peer: Readonly<Record<string, unknown>>) {
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
    ${meter(Number.isFinite(rssi) ? share : 0, rssi < dbm_weak)}
  </li>`;
}

function channelCard(asset: LiveAsset, view: View) {
  const { link, status } = view.world.feeds.get(asset.id) ?? {};
  if (!link && !status) return '';
  const freshness = link ? feedFreshness(asset, 'link', view) : undefined;
  const group = freshness && { ...freshness, isNamed: true };
  const amount = (value: number | undefined, unit: string) =>
    value === undefined ? t.notReported : quantity(value, unit);
  const channel = numberOf(link, 'channel');
  const busy = numberOf(link, 'busy_pct');
  const temperature = numberOf(status, 'temperature_c');
  const facts = [
    fact(
      t.radio.channel,
      channel === undefined ? t.notReported : `${channel} (${amount(numberOf(link, 'freq_mhz'), 'MHz')})`,
      group,
    ),
    fact(t.radio.width, amount(numberOf(link, 'bandwidth_mhz'), 'MHz'), group),
    fact(t.radio.power, amount(numberOf(link, 'txpower_dbm'), 'dBm'), group),
    fact(t.radio.noise, amount(numberOf(link, 'noise'), 'dBm'), group),
    busy === undefined ? '' : fact(t.radio.busy, amount(busy, '%'), group),
    temperature === undefined ? '' : fact(t.radio.temperature, amount(temperature, '°C')),
  ];
  return card(
    'channel',
    t.radio.channelTitle,
    html`<dl class="facts small pad">${facts}</dl>`,
    freshness ? age(freshness) : '',
  );
}
