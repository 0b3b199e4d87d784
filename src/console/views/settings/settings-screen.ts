/** Settings of this browser: theme, units, time, language, map; and help for people who write their own client. */
import { choicesOf, setting_names, settings, type Settings } from '../../settings.ts';
import { zoneName } from '../../units.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { card, chip } from '../parts/marks.ts';
import { keepMap } from '../map/own-map.ts';
import { integratorView } from './integrator-view.ts';
import type { View } from '../../types.d.ts';

export function settingsScreen(view: View) {
  return {
    heading: { title: t.nav.settings, isKit: true },
    body: html`<div class="page">
      <h1 class="hero only-phone">${t.nav.settings}</h1>
      <section class="card pad settings" id="settings" aria-label=${t.nav.settings}>
        ${setting_names.map((name) => setting(name, view))} ${mapFile(view)}
        <p class="cap">${t.zone(zoneName())}</p>
      </section>
      <a key="manage" class="btn" href="#/manage">${t.nav.manage}</a>
      <a key="help" class="btn" href="/help/">${t.nav.help}</a>
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

/** A map file of this device, over the outline of the world. */
function mapFile({ act }: View) {
  const keep = (file: File | undefined) =>
    void keepMap(file).then(
      () => say(file ? t.settings.mapKept(plain(file.name)) : t.settings.mapGone),
      () => say(t.settings.mapRefused),
    );
  const say = (text: string) => {
    said = text;
    act.changed();
  };
  const choose = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    const [file] = currentTarget.files ?? [];
    if (file) keep(file);
  };
  return html`<fieldset key="map-file" class="setting">
    <legend class="sec">${t.settings.mapFile}</legend>
    <p class="cap">${t.settings.mapFileHint}</p>
    <div class="chips">
      <input type="file" accept=".pmtiles" aria-label=${t.settings.mapFile} onChange=${choose} />
      <button type="button" class="chip" onClick=${() => keep(undefined)}>${t.settings.mapRemove}</button>
    </div>
    <p class="cap" role="status">${said}</p>
  </fieldset>`;
}

let said = '';

function setting(name: keyof Settings, { act }: View) {
  return html`<fieldset key=${name} class="setting">
    <legend class="sec">${t.settings.name[name]}</legend>
    <div class="chips">
      ${choicesOf[name].map((value) =>
        chip(value, t.settings.value[value] ?? value, {
          isOn: settings[name] === value,
          choose: () => act.setting(name, value),
        }),
      )}
    </div>
  </fieldset>`;
}
