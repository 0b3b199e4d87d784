/** The screens by name; those beyond the first are fetched when they are shown, or in idle time. */
import { overview } from './overview/overview-view.js';
import { assetsScreen } from './assets/assets-view.js';
import { lazy, loadStyles } from './parts/lazy.js';

/** @import { Actions, View } from '../types.d.ts' */
/** @import { Screen } from '../world/route.js' */
/** @import { Heading } from './shell/bar-view.js' */

/** @typedef {{ readonly heading: Heading, readonly body: unknown }} Shown */
/** @typedef {(view: View) => Shown} ScreenView */

/** @type {Partial<Record<Screen, ScreenView>>} */
const here = { overview, assets: assetsScreen };

const rest = {
  asset: lazy(async () => {
    const [screen] = await Promise.all([
      import('./asset/asset-view.js'),
      // Its commands ask before they are sent.
      import('./command/confirm.js'),
      loadStyles('asset.css'),
      loadStyles('controls.css'),
    ]);
    return screen.assetScreen;
  }),
  map: lazy(async () => (await import('./map/map-screen.js')).mapScreen),
  links: lazy(async () => {
    const [screen] = await Promise.all([import('./links/links-screen.js'), import('./command/confirm.js')]);
    return screen.linksScreen;
  }),
  activity: lazy(async () => (await import('./activity/activity-screen.js')).activityScreen),
  kits: lazy(async () => (await import('./fleet/fleet-screen.js')).fleetScreen),
  settings: lazy(async () => (await import('./settings/settings-screen.js')).settingsScreen),
};

/** The question before a risky command. */
export const question = lazy(async () => (await import('./command/confirm.js')).question);

/** The list of kits in a sheet. */
export const chooser = lazy(async () => (await import('./shell/kit-chooser.js')).kitChooser);

/** The registration of partner assets. */
export const register = lazy(async () => (await import('./assets/register-view.js')).registerSheet);

/**
 * The screen of the address; undefined while its module is fetched.
 * @param {View} view
 * @returns {Shown | undefined}
 */
export function screenOf(view) {
  const { screen } = view.route;
  const known = here[screen];
  if (known) return known(view);
  const later = screen === 'overview' || screen === 'assets' ? undefined : rest[screen];
  later?.load(view.act);
  return later?.now()?.(view);
}

/**
 * Fetches the other screens in idle time, so that they are there when the link is not.
 * @param {Actions} act
 */
export function fetchScreens(act) {
  for (const part of [...Object.values(rest), question, chooser, register]) part.load(act);
}
