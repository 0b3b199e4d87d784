/** The figures of a link as texts. */
import { rate } from '../../world/bytes.js';
import { number, quantity } from '../../world/units.js';
import { t } from '../../words/words.js';

/** @import { Link } from '../../types.d.ts' */

/**
 * A rate with its arrow; empty when not reported.
 * @param {number | null | undefined} bps
 * @param {string} arrow
 * @returns {string}
 */
export function shortRate(bps, arrow) {
  return typeof bps === 'number' ? `${arrow}\u00a0${rate(bps)}` : '';
}

/**
 * Down and up, latency aside; "not reported" when there is neither.
 * @param {Link} link
 * @returns {string}
 */
export function rateText({ rx_bps, tx_bps }) {
  return [shortRate(rx_bps, '↓'), shortRate(tx_bps, '↑')].filter(Boolean).join(' ') || t.links.noRates;
}

/**
 * Loss and availability.
 * @param {Link} link
 * @returns {string}
 */
export function qualityText({ packet_loss_pct, jitter_ms }) {
  return [
    typeof packet_loss_pct === 'number' && packet_loss_pct > 0
      ? t.links.loss(number(packet_loss_pct, 1))
      : '',
    typeof jitter_ms === 'number' ? t.links.jitter(quantity(jitter_ms, 'ms')) : '',
  ]
    .filter(Boolean)
    .join(', ');
}

/**
 * Data of the month in GB of 10^9 bytes; null: not reported.
 * @param {Link} link
 * @returns {number | null}
 */
export function monthGb({ usage }) {
  const rx = usage?.month_rx_gb;
  const tx = usage?.month_tx_gb;
  return typeof rx !== 'number' && typeof tx !== 'number' ? null : (rx ?? 0) + (tx ?? 0);
}
