/** The figures of a link as texts. */
import { rate } from '../../world/bytes.ts';
import { t } from '../../words/words.ts';
import type { Link } from '../../types.d.ts';

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
export function rateText(link: Link): string {
  return ratesOf(link).join(' ') || t.links.noRates;
}

/** Data of the month in GB of 10^9 bytes; null: not reported. */
export function monthGb({ usage }: Link): number | null {
  const rx = usage?.month_rx_gb;
  const tx = usage?.month_tx_gb;
  return typeof rx !== 'number' && typeof tx !== 'number' ? null : (rx ?? 0) + (tx ?? 0);
}
