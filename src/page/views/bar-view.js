/** The bar at the top: the name of the kit, and whether the data below is live. Its height is fixed. */
import { duration, isKitReachable } from '../world/age.js';
import { html } from './html.js';
import { name } from './marks.js';
import { plain } from '../world/text.js';

/** @import { View } from '../types.d.ts' */

/** @param {View} view */
export function barView(view) {
  const { link, choices } = view;
  const isLost = link.state === 'lost';
  return html`<header class=${isLost ? 'bar lost' : 'bar'}>
    <h1>${kitName(view)}</h1>
    <p class="page-link" role="status" aria-live="polite">${linkText(view)}</p>
    <p class="kit-link">${kitText(view)}</p>
    ${choices.kits.length > 1 && kitPicker(view)}
  </header>`;
}

/** @param {View} view */
function kitName({ world, choices }) {
  const chosen = choices.kits.find(({ id }) => id === choices.kit_id);
  const text = world.kit?.kit_name ?? chosen?.name;
  return text === undefined ? 'Kit' : name(text);
}

/** @param {View} view */
function linkText({ link, choices }) {
  if (choices.needsKey) return 'NOT LOGGED IN';
  if (link.state === 'live') return html`<span aria-hidden="true">●</span> LIVE`;
  // Hidden from screen readers, which would announce each second.
  const since = html`<span aria-hidden="true"> ${duration(performance.now() - link.since_ms)}</span>`;
  if (link.state === 'lost') return html`<b>✖ PAGE LINK LOST</b>${since}`;
  return html`… CONNECTING${since}`;
}

/** @param {View} view */
function kitText(view) {
  const { world, link, time_ms } = view;
  const { kit } = world;
  if (link.state === 'lost') return 'The data below is old. Commands are locked. Reconnecting.';
  if (!kit) return 'No data yet';
  const seen =
    kit.last_seen === null ? 'never seen' : `seen ${duration(time_ms - Date.parse(kit.last_seen))} ago`;
  return html`${isKitReachable(view) ? '● Kit online' : '○ KIT OFFLINE'}, ${seen}`;
}

/** @param {View} view */
function kitPicker({ choices, act }) {
  /** @param {Event & { currentTarget: HTMLSelectElement }} event */
  const choose = ({ currentTarget }) => act.chooseKit(currentTarget.value);
  return html`<label class="kit-picker">
    <span class="unseen">Kit</span>
    <select onChange=${choose}>
      ${choices.kits.map(
        ({ id, name: text }) =>
          html`<option value=${id} selected=${id === choices.kit_id}>${plain(text)}</option>`,
      )}
    </select>
  </label>`;
}
