/** The bar at the top: where the page is, and whether the data below is live. */
import { duration } from '../../units.ts';
import { elapsed_ms } from '../../world/elapsed.ts';
import { addressOf } from '../../world/route.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { state } from '../parts/marks.ts';
import { kitButton, openAlarms } from './nav.ts';
import type { View } from '../../types.d.ts';

export interface Heading {
  title: unknown;
  /** Below the title. */
  sub?: unknown;
  /** Address of the screen above. */
  back?: string;
  /** State of what the screen shows; the page's link when left out. */
  pill?: unknown;
  /** From 900 px. */
  tools?: unknown;
  /** The phone shows the kit's name instead. */
  isKit?: boolean;
}

export function barView(view: View, { title, sub, back, pill, tools, isKit = false }: Heading) {
  const { choices, link } = view;
  const isLost = link.state === 'lost' && !choices.needsKey;
  return html`<header class="bar">
    ${back && html`<a class="icon-btn" href=${back} aria-label=${t.back}>${icon('arrow-left')}</a>`}
    ${isKit && kitPart(view)}
    <div class=${isKit ? 'grow only-wide' : 'grow'}>
      <h1 class=${back ? '' : 'hero'}>${title}</h1>
      ${sub && html`<span class="sub">${sub}</span>`}
    </div>
    ${tools && html`<div class="only-wide">${tools}</div>`}
    <span class="page-link" role="status">${pill && !isLost ? pill : pageLink(view)}</span>
    ${isKit && settingsLink(view)}
  </header>`;
}

function settingsLink({ choices }: View) {
  const href = addressOf('settings', choices.kit_id);
  return html`<a class="icon-btn only-phone" href=${href} aria-label=${t.nav.settings}
    >${icon('ellipsis')}</a
  >`;
}

/** On a phone: the list of kits, and the kit that is shown. */
function kitPart(view: View) {
  return html`${
      view.choices.kits.length > 1 &&
      html`<a class="icon-btn only-phone" href="#/kits" aria-label=${t.kits.all}>${icon('list')}</a>`
    }
    <div class="grow only-phone">${kitButton(view)}</div>
    ${alarmBell(view)}`;
}

/** On a phone, while there are alarms: from 900 px the rail has them. */
function alarmBell(view: View) {
  const alarms = openAlarms(view);
  if (alarms === 0) return '';
  return html`<a class="icon-btn only-phone bell" href="#/alarms" aria-label=${t.alarms.open(alarms)}
    >${icon('bell-ring')}<span class="count" aria-hidden="true">${alarms}</span></a
  >`;
}

function pageLink({ link, choices }: View) {
  if (choices.needsKey) return state('loggedOut', { isPill: true });
  if (link.state === 'live') return state('live', { isPill: true });
  // Hidden from screen readers, which would announce each second.
  const since = html`<span aria-hidden="true"> ${duration(elapsed_ms() - link.since_ms)}</span>`;
  return state(link.state === 'lost' ? 'lost' : 'connecting', { isPill: true, more: since });
}
