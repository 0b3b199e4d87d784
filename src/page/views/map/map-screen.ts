/** The full map of the kit. */
import { t } from '../../words/words.ts';
import { lostBox } from '../overview/overview-view.ts';
import { html } from '../parts/html.ts';
import { mapBox } from './map-box.ts';
import type { View } from '../../types.d.ts';

export function mapScreen(view: View) {
  return {
    heading: { title: t.nav.map, isKit: true },
    body: html`<div class="page full">
      ${lostBox(view)}
      <h1 class="unseen only-phone">${t.nav.map}</h1>
      ${mapBox(view, { isTall: true })}
    </div>`,
  };
}
