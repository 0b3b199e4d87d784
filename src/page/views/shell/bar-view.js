/** The bar at the top: where the page is, and whether the data below is live. */
import { duration } from '../../world/age.js';
import { addressOf } from '../../world/route.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { icon } from '../parts/icon.js';
import { state } from '../parts/marks.js';
import { kitButton } from './nav.js';

/** @import { View } from '../../types.d.ts' */

/**
 * @typedef {object} Heading
 * @property {unknown} title
 * @property {unknown} [sub] below the title
 * @property {string} [back] address of the screen above
 * @property {unknown} [pill] state of what the screen shows; the page's link when left out
 * @property {unknown} [tools] from 900 px
 * @property {boolean} [isKit] the phone shows the kit's name instead
 */

/**
 * @param {View} view
 * @param {Heading} heading
 */
export function barView(view, { title, sub, back, pill, tools, isKit = false }) {
  const { choices, link } = view;
  const isLost = link.state === 'lost' && !choices.needsKey;
  return html`<header class="bar">
    ${back && html`<a class="icon-btn" href=${back} aria-label=${t.back}>${icon('arrow-left')}</a>`}
    ${isKit && html`<div class="grow only-phone">${kitButton(view)}</div>`}
    <div class=${isKit ? 'grow only-wide' : 'grow'}>
      <h1 class=${back ? '' : 'hero'}>${title}</h1>
      ${sub && html`<span class="sub">${sub}</span>`}
    </div>
    ${tools && html`<div class="only-wide">${tools}</div>`}
    <span class="page-link" role="status">${pill && !isLost ? pill : pageLink(view)}</span>
    ${
      isKit &&
      html`<a
        class="icon-btn only-phone"
        href=${addressOf('settings', choices.kit_id)}
        aria-label=${t.nav.settings}
        >${icon('ellipsis')}</a
      >`
    }
  </header>`;
}

/** @param {View} view */
function pageLink({ link, choices }) {
  if (choices.needsKey) return state('loggedOut', { isPill: true });
  if (link.state === 'live') return state('live', { isPill: true });
  // Hidden from screen readers, which would announce each second.
  const since = html`<span aria-hidden="true"> ${duration(performance.now() - link.since_ms)}</span>`;
  return state(link.state === 'lost' ? 'lost' : 'connecting', { isPill: true, more: since });
}
