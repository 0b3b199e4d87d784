/** The uplink queue: the backlog on the kit, and what this service has received of it. */
import { duration, isKitReachable } from '../../world/age.ts';
import { queueFreshness } from '../../world/queue.ts';
import { size } from '../../world/bytes.ts';
import { plain } from '../../world/text.ts';
import { number } from '../../world/units.ts';
import { t } from '../../words/words.ts';
import { drainTime } from '../overview/tiles.ts';
import { html } from '../parts/html.ts';
import { card, fact, name, state } from '../parts/marks.ts';
import type { View } from '../../types.d.ts';

export function queueCard(view: View) {
  const { queue } = view.world;
  if (!queue) return '';
  const { waiting_rows, waiting_bytes, oldest, received, missing, dropped, refused, software } = queue;
  const freshness = queueFreshness(view);
  const bytes = typeof waiting_bytes === 'number' ? ` (${size(waiting_bytes)})` : '';
  const waiting =
    typeof waiting_rows === 'number'
      ? `${number(waiting_rows)}${waiting_rows > 0 ? bytes : ''}`
      : t.notReported;
  return card(
    'uplink',
    t.queue.title,
    html`<p class="pad queue-state">${stateOf(view)}</p>
      <dl class="facts small pad">
        ${fact(t.queue.waiting, waiting, freshness)}
        ${fact(t.queue.oldest, oldest ? duration(view.time_ms - Date.parse(oldest)) : typeof waiting_rows === 'number' ? t.queue.none : t.notReported, freshness)}
        ${fact(t.queue.emptyIn, drainTime(view), freshness)} ${fact(t.queue.received, number(received))}
        ${fact(t.queue.lastStored, storedText(view))} ${fact(t.queue.missing, number(missing))}
        ${fact(t.queue.dropped, number(dropped))} ${fact(t.queue.rejected, number(refused))}
        ${software ? fact(t.queue.software, plain(software)) : ''}
      </dl>`,
  );
}

function stateOf(view: View) {
  const { queue } = view.world;
  const word = queue?.online ? (isKitReachable(view) ? 'online' : 'wasOnline') : 'offline';
  const since = queue?.since ? t.queue.for(duration(view.time_ms - Date.parse(queue.since))) : '';
  return html`${state(word)}
    <span class="cap">${since}${queue?.reason ? html`: ${name(queue.reason)}` : ''}</span>`;
}

/** A stored message is acknowledged within a second. */
function storedText({ world, time_ms }: View) {
  const last_seen = world.kit?.last_seen;
  return last_seen ? t.ago(time_ms - Date.parse(last_seen)) : t.queue.nothing;
}
