/** The full map of the kit. */
import { t } from '../../words/words.js';
import { lostBox } from '../overview/overview-view.js';
import { html } from '../parts/html.js';
import { mapBox } from './map-box.js';

/** @import { View } from '../../types.d.ts' */

/** @param {View} view */
export function mapScreen(view) {
  return {
    heading: { title: t.nav.map, isKit: true },
    body: html`<div class="page full">
      ${lostBox(view)}
      <h1 class="unseen only-phone">${t.nav.map}</h1>
      ${mapBox(view, { isTall: true })}
    </div>`,
  };
}
