/** Settings of this browser: theme, units, time, language, map; and help for people who write their own client. */
import { choicesOf, settings } from '../../world/settings.js';
import { zoneName } from '../../world/units.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { card } from '../parts/marks.js';
import { integratorView } from './integrator-view.js';

/** @import { Settings } from '../../world/settings.js' */
/** @import { View } from '../../types.d.ts' */

/** @type {readonly (keyof Settings)[]} */
const order = ['theme', 'units', 'zone', 'language', 'map'];

/** @param {View} view */
export function settingsScreen(view) {
  return {
    heading: { title: t.nav.settings, isKit: true },
    body: html`<div class="page">
      <h1 class="hero only-phone">${t.nav.settings}</h1>
      <section class="card pad settings" id="settings" aria-label=${t.nav.settings}>
        ${order.map((name) => setting(name, view))}
        <p class="cap">${t.zone(zoneName())}</p>
      </section>
      ${view.choices.session && card('session', t.settings.session, logout(view))} ${integratorView(view)}
    </div>`,
  };
}

/** @param {View} view */
function logout({ act, choices }) {
  const scopes = choices.session?.scopes.join(', ') ?? '';
  return html`<div class="pad head wrap">
    <p class="cap">${t.settings.scopes(scopes)}</p>
    <button type="button" class="btn" onClick=${() => void act.logout()}>${t.settings.logout}</button>
  </div>`;
}

/**
 * @param {keyof Settings} name
 * @param {View} view
 */
function setting(name, { act }) {
  return html`<fieldset key=${name} class="setting">
    <legend class="sec">${t.settings.name[name]}</legend>
    <div class="chips">
      ${choicesOf[name].map(
        (value) =>
          html`<button
            type="button"
            key=${value}
            class="chip"
            aria-pressed=${String(settings[name] === value)}
            onClick=${() => act.setting(name, value)}
          >
            ${t.settings.value[value] ?? value}
          </button>`,
      )}
    </div>
  </fieldset>`;
}
