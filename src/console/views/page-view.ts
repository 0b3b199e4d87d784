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
  const found = own(sheets, name);
  return found && shown(found, view);
}

function shown({ load, now }: Lazy<(view: View) => unknown>, view: View) {
  load(view.act);
  return now()?.(view);
}

/** The content of a screen. Screens beyond the first are fetched when they are shown, or in idle time. */
interface Shown {
  readonly heading: Heading;
  readonly body: unknown;
}
type ScreenView = (view: View) => Shown;

const here: Partial<Record<Screen, ScreenView>> = { overview, assets: assetsScreen };

/** @param others what the part needs beside its module: style sheets, or modules that it asks for when it is there */
function part<T>(load: () => Promise<T>, ...others: readonly (string | (() => Promise<unknown>))[]) {
  return lazy(async () => {
    const needed = others.map(async (other) => (typeof other === 'string' ? loadStyles(other) : other()));
    const [loaded] = await Promise.all([load(), ...needed]);
    return loaded;
  });
}

/** Commands ask before they are sent. */
const confirm = async () => import('./command/confirm.ts');
const activity = part(
  async () => (await import('./activity/activity-screen.ts')).activityScreen,
  'files.css',
);

const rest = {
  asset: part(
    async () => (await import('./asset/asset-view.ts')).assetScreen,
    'files.css',
    confirm,
    'asset.css',
    'controls.css',
  ),
  files: part(async () => (await import('./files/files-view.ts')).filesScreen, 'files.css'),
  map: part(async () => (await import('./map/map-box.ts')).mapScreen),
  links: part(async () => (await import('./links/links-screen.ts')).linksScreen, confirm),
  align: part(async () => (await import('./align/align-screen.ts')).alignScreen, 'asset.css', 'controls.css'),
  activity,
  alarms: part(
    async () => (await import('./alarms/alarms-screen.ts')).alarmsScreen,
    'fleet.css',
    'files.css',
  ),
  manage: part(async () => (await import('./manage/manage-screen.ts')).manageScreen, 'fleet.css'),
  log: activity,
  kits: part(async () => (await import('./fleet/fleet-screen.ts')).fleetScreen, 'fleet.css'),
  settings: part(async () => (await import('./settings/settings-screen.ts')).settingsScreen),
};

/** The question before a risky command. */
const question = part(async () => (await confirm()).question);

const sheets: Readonly<Record<string, Lazy<(view: View) => unknown>>> = {
  kits: part(async () => (await import('./shell/kit-chooser.ts')).kitChooser),
  shortcuts: part(async () => (await import('./shell/shortcuts-sheet.ts')).shortcutsSheet),
  file: part(async () => (await import('./files/files-view.ts')).fileSheet, 'files.css'),
  register: part(async () => (await import('./assets/register-view.ts')).registerSheet),
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
  for (const each of [...Object.values(rest), ...Object.values(sheets), question]) each.load(act);
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
