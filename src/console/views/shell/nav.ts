/** The places of all kits and the five of a kit: tabs at the bottom of a phone, a rail from 900 px. */
import { attentionList } from '../attention.ts';
import { html } from '../parts/html.ts';
import { icon, type Icon } from '../parts/icon.ts';
import { name } from '../parts/marks.ts';
import { steady } from '../parts/steady.ts';
import { addressOf, isOfFleet } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { number } from '../../units.ts';
import { t } from '../../words/words.ts';
import type { FleetScreen, Screen, View } from '../../types.d.ts';

type Place = 'overview' | 'map' | 'assets' | 'links' | 'activity';

const places: readonly (readonly [Place, Icon])[] = [
  ['overview', 'gauge'],
  ['map', 'map'],
  ['assets', 'layout-grid'],
  ['links', 'activity'],
  ['activity', 'bell'],
];

const fleetPlaces: readonly (readonly [FleetScreen, Icon])[] = [
  ['kits', 'list'],
  ['alarms', 'bell-ring'],
  ['log', 'logs'],
  ['manage', 'wrench'],
];

function placeOf(screen: Screen): Screen {
  return screen === 'asset' || screen === 'files' ? 'assets' : screen === 'align' ? 'links' : screen;
}

export function tabsView(view: View) {
  const { choices, route } = view;
  const waiting = attentionList(view).length;
  if (isOfFleet(route.screen)) return fleetTabs(view);
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

function fleetTabs(view: View) {
  const { route, choices } = view;
  const alarms = openAlarms(view);
  return html`<nav class="tabs" aria-label=${t.nav.kits}>
    ${fleetPlaces.map(
      ([screen, sign]) =>
        html`<a
          key=${screen}
          href=${addressOf(screen, null)}
          aria-current=${route.screen === screen ? 'page' : undefined}
          >${icon(sign)}${screen === 'alarms' && alarms > 0 ? count(alarms) : ''}<span class="word"
            >${t.nav[screen === 'log' ? 'activity' : screen]}</span
          ></a
        >`,
    )}
    <a key="kit" href=${addressOf('overview', choices.kit_id)}
      >${icon('gauge')}<span class="word">${t.nav.label}</span></a
    >
  </nav>`;
}

function count(n: number) {
  return html`<span class="count">${n}<span class="unseen"> ${t.nav.needAttention}</span></span>`;
}

export function railView(view: View) {
  const { choices, world, route, act } = view;
  const waiting = attentionList(view).length;
  const figures: Partial<Record<Screen, string | number>> = {
    kits: number(choices.kits.length),
    assets: world.assets.size,
    links: world.kit?.wans.length ?? 0,
  };
  const alarms = openAlarms(view);
  const shown = [alarms, route.screen, choices.kit_id, waiting, figures, view.theme];
  const counted: Partial<Record<Screen, number>> = { alarms, overview: waiting };
  const link = ([screen, sign]: readonly [Place | FleetScreen, Icon]) => {
    const n = counted[screen] ?? 0;
    return html`<a
      key=${screen}
      class="nav"
      href=${addressOf(screen, choices.kit_id)}
      aria-current=${placeOf(route.screen) === screen ? 'page' : undefined}
      >${icon(sign)}<span>${t.nav[screen]}</span>${n > 0 ? count(n) : html`<span class="n">${figures[screen] || ''}</span>`}</a
    >`;
  };
  const draw = () =>
    html`<nav class="rail" aria-label=${t.nav.label}>
      <div class="fleet-nav">
        ${fleetPlaces.filter(([screen]) => screen === 'alarms' || screen === 'manage' || choices.kits.length > 1).map(link)}
      </div>
      ${kitButton(view)} ${places.map(link)}
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

/** What the kit is called, and where it is. */
function kitText({ choices, world }: View) {
  const chosen = choices.kits.find(({ id }) => id === choices.kit_id);
  return { text: world.kit?.kit_name ?? chosen?.name, city: world.kit?.location?.kit_location };
}

/** Alarms that nobody has taken. */
export function openAlarms({ choices }: View): number {
  return choices.alarms.filter(({ state }) => state === 'open').length;
}

/** What the tab of the browser is called: what is shown, and of which kit. */
export function tabTitle(view: View): string {
  const { route, world, choices } = view;
  if (choices.needsKey) return t.login.heading;
  const asset = world.assets.get(route.asset_id ?? '');
  const screen = route.screen === 'asset' ? plain(asset?.name ?? t.nav.assets) : t.nav[route.screen];
  const { text } = kitText(view);
  return isOfFleet(route.screen) || text === undefined ? screen : `${screen} – ${plain(text)}`;
}

/** Opens the list of kits; the same on phone and rail. */
export function kitButton(view: View) {
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
