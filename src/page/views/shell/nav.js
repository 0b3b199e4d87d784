/** The five places of a kit: tabs at the bottom of a phone, a rail from 900 px. */
import { attentionList } from '../overview/attention.js';
import { html } from '../parts/html.js';
import { icon } from '../parts/icon.js';
import { name } from '../parts/marks.js';
import { steady } from '../parts/steady.js';
import { addressOf } from '../../world/route.js';
import { number } from '../../world/units.js';
import { t } from '../../words/words.js';

/** @import { Icon } from '../parts/icon.js' */
/** @import { Screen } from '../../world/route.js' */
/** @import { View } from '../../types.d.ts' */

/** @typedef {'overview' | 'map' | 'assets' | 'links' | 'activity'} Place */

/** @type {readonly (readonly [Place, Icon])[]} */
const places = [
  ['overview', 'gauge'],
  ['map', 'map'],
  ['assets', 'layout-grid'],
  ['links', 'activity'],
  ['activity', 'bell'],
];

/**
 * @param {Screen} screen
 * @returns {Screen}
 */
function placeOf(screen) {
  return screen === 'asset' ? 'assets' : screen;
}

/** @param {View} view */
export function tabsView(view) {
  const { choices, route } = view;
  const waiting = attentionList(view).length;
  const draw = () =>
    html`<nav class="tabs" aria-label=${t.nav.label}>
      ${places.map(
        ([screen, sign]) =>
          html`<a
            key=${screen}
            href=${addressOf(screen, choices.kit_id)}
            aria-current=${placeOf(route.screen) === screen ? 'page' : undefined}
            >${icon(sign)}${screen === 'overview' && waiting > 0 && route.screen !== 'overview' ? count(waiting) : ''}<span
              class="word"
              >${t.nav[screen]}</span
            ></a
          >`,
      )}
    </nav>`;
  return steady([route.screen, choices.kit_id, waiting], draw);
}

/** @param {number} n */
function count(n) {
  return html`<span class="count">${n}<span class="unseen"> ${t.nav.needAttention}</span></span>`;
}

/** @param {View} view */
export function railView(view) {
  const { choices, world, route, act } = view;
  const waiting = attentionList(view).length;
  const figures = { assets: world.assets.size, links: world.kit?.wans.length ?? 0 };
  const shown = [route.screen, choices.kit_id, waiting, figures, choices.kits.length, view.theme];
  const draw = () =>
    html`<nav class="rail" aria-label=${t.nav.label}>
      ${kitButton(view)}
      ${
        choices.kits.length > 1 &&
        html`<a class="nav" href="#/kits" aria-current=${route.screen === 'kits' ? 'page' : undefined}
          >${icon('list')}<span>${t.nav.kits}</span><span class="n">${number(choices.kits.length)}</span></a
        >`
      }
      ${places.map(
        ([screen, sign]) =>
          html`<a
            key=${screen}
            class="nav"
            href=${addressOf(screen, choices.kit_id)}
            aria-current=${placeOf(route.screen) === screen ? 'page' : undefined}
            >${icon(sign)}<span>${t.nav[screen]}</span>${
              screen === 'overview' && waiting > 0
                ? count(waiting)
                : html`<span class="n"
                    >${screen === 'assets' || screen === 'links' ? figures[screen] || '' : ''}</span
                  >`
            }</a
          >`,
      )}
      <div class="end">
        <button type="button" class="nav" onClick=${act.switchTheme}>
          ${icon(view.theme === 'day' ? 'moon' : 'sun')}<span
            >${view.theme === 'day' ? t.nav.night : t.nav.day}</span
          >
        </button>
        <a
          class="nav"
          href=${addressOf('settings', choices.kit_id)}
          aria-current=${route.screen === 'settings' ? 'page' : undefined}
          >${icon('settings')}<span>${t.nav.settings}</span></a
        >
      </div>
    </nav>`;
  return steady([...shown, kitText(view)], draw);
}

/**
 * What the kit is called, and where it is.
 * @param {View} view
 */
function kitText({ choices, world }) {
  const chosen = choices.kits.find(({ id }) => id === choices.kit_id);
  return { text: world.kit?.kit_name ?? chosen?.name, city: world.kit?.location?.kit_location };
}

/**
 * Opens the list of kits; the same on phone and rail.
 * @param {View} view
 */
export function kitButton(view) {
  const { act } = view;
  const { text, city } = kitText(view);
  const open = () => act.openSheet('kits');
  return html`<button type="button" class="kit-btn" aria-haspopup="dialog" onClick=${open}>
    <span
      >${text === undefined ? t.kit.noName : name(text)}${city ? html`<small class="only-wide">${name(city)}</small>` : ''}</span
    >
    ${icon('chevron-down', 's')}
  </button>`;
}
