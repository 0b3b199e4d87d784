/** The frame of the page around the screen: rail, bar, tabs, login, open sheets, the question before a risky command; and the screens by name. */
import { own } from '../json.ts';
import { t } from '../words/words.ts';
import { html } from './parts/html.ts';
import { barView, type Heading } from './shell/bar-view.ts';
import { railView, tabsView } from './shell/nav.ts';
import { type Lazy, lazy, loadStyles } from './parts/lazy.ts';
import type { Screen, View, Actions } from '../types.d.ts';
import { overview } from './overview/overview-view.ts';
import { assetsScreen } from './assets/assets-view.ts';
import { isOfFleet } from '../world/route.ts';

export function pageView(view: View) {
  const { choices, world, route } = view;
  if (choices.needsKey)
    return frame(view, {
      heading: { title: t.login.heading },
      body: html`<div class="page">${loginView(view)}</div>`,
    });
  const isKnown = isOfFleet(route.screen) ? choices.session !== null : world.kit !== null;
  const waiting = {
    heading: { title: t.hero.waiting, isKit: true },
    body: html`<div class="page">
      <p class="empty" role="status">${choices.trouble || t.hero.waiting}</p>
    </div>`,
  };
  return frame(view, (isKnown ? screenOf(view) : undefined) ?? waiting);
}

function frame(view: View, { heading, body }: Shown) {
  const { choices, link, route } = view;
  const hasTabs = !choices.needsKey && route.screen !== 'asset' && route.screen !== 'align';
  return html`<div
      class=${['app', link.state === 'lost' ? 'is-lost' : '', choices.needsKey ? 'alone' : ''].join(' ')}
    >
      ${!choices.needsKey && railView(view)} ${barView(view, heading)}
      <main>${body}</main>
      ${hasTabs && tabsView(view)}
    </div>
    ${sheet(view)} ${choices.confirming && shown(question, view)}`;
}

/** The open sheet; those of commands belong to their asset. */
function sheet(view: View) {
  const [name = ''] = view.choices.sheet?.split(' ') ?? [];
  const part = own(sheets, name);
  return part && shown(part, view);
}

function shown(part: Lazy<(view: View) => unknown>, view: View) {
  part.load(view.act);
  return part.now()?.(view);
}

/** The content of a screen. Screens beyond the first are fetched when they are shown, or in idle time. */
interface Shown {
  readonly heading: Heading;
  readonly body: unknown;
}
type ScreenView = (view: View) => Shown;

const here: Partial<Record<Screen, ScreenView>> = { overview, assets: assetsScreen };

async function activity() {
  const [screen] = await Promise.all([import('./activity/activity-screen.ts'), loadStyles('files.css')]);
  return screen.activityScreen;
}

const rest = {
  asset: lazy(async () => {
    const [screen] = await Promise.all([
      import('./asset/asset-view.ts'),
      loadStyles('files.css'),
      // Its commands ask before they are sent.
      import('./command/confirm.ts'),
      loadStyles('asset.css'),
      loadStyles('controls.css'),
    ]);
    return screen.assetScreen;
  }),
  files: lazy(async () => {
    const [screen] = await Promise.all([import('./files/files-view.ts'), loadStyles('files.css')]);
    return screen.filesScreen;
  }),
  map: lazy(async () => (await import('./map/map-box.ts')).mapScreen),
  links: lazy(async () => {
    const [screen] = await Promise.all([import('./links/links-screen.ts'), import('./command/confirm.ts')]);
    return screen.linksScreen;
  }),
  align: lazy(async () => {
    const [screen] = await Promise.all([
      import('./align/align-screen.ts'),
      loadStyles('asset.css'),
      loadStyles('controls.css'),
    ]);
    return screen.alignScreen;
  }),
  activity: lazy(activity),
  alarms: lazy(async () => {
    const [screen] = await Promise.all([
      import('./alarms/alarms-screen.ts'),
      loadStyles('fleet.css'),
      loadStyles('files.css'),
    ]);
    return screen.alarmsScreen;
  }),
  manage: lazy(async () => {
    const [screen] = await Promise.all([import('./manage/manage-screen.ts'), loadStyles('fleet.css')]);
    return screen.manageScreen;
  }),
  log: lazy(activity),
  kits: lazy(async () => {
    const [screen] = await Promise.all([import('./fleet/fleet-screen.ts'), loadStyles('fleet.css')]);
    return screen.fleetScreen;
  }),
  settings: lazy(async () => (await import('./settings/settings-screen.ts')).settingsScreen),
};

/** The question before a risky command. */
const question = lazy(async () => (await import('./command/confirm.ts')).question);

/** The list of kits in a sheet. */
const chooser = lazy(async () => (await import('./shell/kit-chooser.ts')).kitChooser);

/** The shortcuts of the keyboard. */
const shortcuts = lazy(async () => (await import('./shell/shortcuts-sheet.ts')).shortcutsSheet);

/** A picture of a file, large. */
const picture = lazy(async () => {
  const [screen] = await Promise.all([import('./files/files-view.ts'), loadStyles('files.css')]);
  return screen.fileSheet;
});

/** The registration of partner assets. */
const register = lazy(async () => (await import('./assets/register-view.ts')).registerSheet);

const sheets: Readonly<Record<string, Lazy<(view: View) => unknown>>> = {
  kits: chooser,
  shortcuts,
  file: picture,
  register,
};

/** The screen of the address; undefined while its module is fetched. */
function screenOf(view: View): Shown | undefined {
  const { screen } = view.route;
  const known = here[screen];
  if (known) return known(view);
  const later = screen === 'overview' || screen === 'assets' ? undefined : rest[screen];
  later?.load(view.act);
  return later?.now()?.(view);
}

/** Fetches the other screens in idle time, so that they are there when the link is not. */
export function fetchScreens(act: Actions) {
  for (const part of [...Object.values(rest), question, chooser, shortcuts, picture, register])
    part.load(act);
}

/** Asks for the API key. It is sent to the service once and not stored: the service answers with a cookie. */
function loginView({ act, choices }: View) {
  const submit = (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get('key');
    if (typeof key === 'string' && key.trim() !== '') void act.login(key.trim());
  };
  return html`<section key="login" class="card pad login" aria-labelledby="login-title">
    <h2 id="login-title" class="title">${t.login.title}</h2>
    <form onSubmit=${submit}>
      <label class="input"
        ><span>${t.login.label}</span>
        <input type="password" name="key" autocomplete="current-password" required />
      </label>
      <button type="submit" class="btn main">${t.login.open}</button>
      <p role="status" class="fault">${choices.trouble}</p>
    </form>
  </section>`;
}
