/** Data of this month by link, with the limit and a forecast where a limit is set. */
import { field } from '../../world/json.ts';
import { number } from '../../world/units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { shape } from '../parts/icon.ts';
import { card, name } from '../parts/marks.ts';
import { monthGb } from './figures.ts';
import { linkTitle } from './link-row.ts';
import type { Link, View } from '../../types.d.ts';

const day_ms = 86_400_000;
const warned_share = 0.8;

export function dataCard({ world, time_ms }: View) {
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
    ${
      share !== undefined &&
      html`<svg
        class=${isWarned ? 'meter weak' : 'meter'}
        viewBox="0 0 100 8"
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect class="all" width="100" height="8" />
        <rect width=${share * 100} height="8" />
      </svg>`
    }
    ${full_ms !== undefined && html`<span class="state warn">${shape('warn')}<span>${t.data.fullOn(full_ms)}</span></span>`}
  </div>`;
}

/** When the limit is reached at the mean rate of this month; undefined: not within it. */
export function fullAt(gb: number, limit_gb: number, time_ms: number): number | undefined {
  const now = new Date(time_ms);
  const first_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  const end_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const passed_ms = time_ms - first_ms;
  // The first day is a poor estimate of the rate of a month.
  if (passed_ms < day_ms || gb <= 0) return undefined;
  const full_ms = first_ms + (limit_gb / gb) * passed_ms;
  return full_ms < end_ms ? Math.max(full_ms, time_ms) : undefined;
}
