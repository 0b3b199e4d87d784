/** The uplink queue: the backlog on the kit, and what this service has received of it. */
import { duration, isKitReachable } from '../../world/age.js';
import { queueFreshness } from '../../world/queue.js';
import { size } from '../../world/bytes.js';
import { plain } from '../../world/text.js';
import { number } from '../../world/units.js';
import { t } from '../../words/words.js';
import { drainTime } from '../overview/tiles.js';
import { html } from '../parts/html.js';
import { card, fact, name, state } from '../parts/marks.js';

/** @import { View } from '../../types.d.ts' */

/** @param {View} view */
export function queueCard(view) {
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

/** @param {View} view */
function stateOf(view) {
  const { queue } = view.world;
  const word = queue?.online ? (isKitReachable(view) ? 'online' : 'wasOnline') : 'offline';
  const since = queue?.since ? t.queue.for(duration(view.time_ms - Date.parse(queue.since))) : '';
  return html`${state(word)}
    <span class="cap">${since}${queue?.reason ? html`: ${name(queue.reason)}` : ''}</span>`;
}

/**
 * A stored message is acknowledged within a second.
 * @param {View} view
 */
function storedText({ world, time_ms }) {
  const last_seen = world.kit?.last_seen;
  return last_seen ? t.ago(time_ms - Date.parse(last_seen)) : t.queue.nothing;
}
