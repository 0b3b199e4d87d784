/** The figures of a link as texts. */
import { rate } from '../../world/bytes.js';
import { number, quantity } from '../../world/units.js';
import { t } from '../../words/words.js';

/** @import { Link } from '../../types.d.ts' */

const space = '\u00a0';

/**
 * Down and up, each with its arrow, the unit once where both have it; none where neither is reported.
 * @param {Pick<Link, 'rx_bps' | 'tx_bps'>} link
 * @returns {readonly string[]}
 */
export function ratesOf({ rx_bps, tx_bps }) {
  const down = typeof rx_bps === 'number' ? rate(rx_bps) : '';
  const up = typeof tx_bps === 'number' ? rate(tx_bps) : '';
  const unit = up.slice(up.indexOf(space));
  const shown = up !== '' && down.endsWith(unit) ? down.slice(0, -unit.length) : down;
  return [shown && `↓${space}${shown}`, up && `↑${space}${up}`].filter(Boolean);
}

/**
 * Down and up in one text; "not reported" when there is neither.
 * @param {Link} link
 * @returns {string}
 */
export function rateText(link) {
  return ratesOf(link).join(' ') || t.links.noRates;
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
