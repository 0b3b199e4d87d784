/** Settings of this browser: theme, units, time, language, map; and help for people who write their own client. */
import { choicesOf, settings, type Settings } from '../../settings.ts';
import { zoneName } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { card } from '../parts/marks.ts';
import { integratorView } from './integrator-view.ts';
import type { View } from '../../types.d.ts';

const order: readonly (keyof Settings)[] = ['theme', 'units', 'zone', 'language', 'map'];

export function settingsScreen(view: View) {
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

function logout({ act, choices }: View) {
  const scopes = choices.session?.scopes.join(', ') ?? '';
  return html`<div class="pad head wrap">
    <p class="cap">${t.settings.scopes(scopes)}</p>
    <button type="button" class="btn" onClick=${() => void act.logout()}>${t.settings.logout}</button>
  </div>`;
}

function setting(name: keyof Settings, { act }: View) {
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
