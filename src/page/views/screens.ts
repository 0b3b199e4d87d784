/** The screens by name; those beyond the first are fetched when they are shown, or in idle time. */
import { overview } from './overview/overview-view.ts';
import { assetsScreen } from './assets/assets-view.ts';
import { lazy, loadStyles } from './parts/lazy.ts';
import type { Actions, View } from '../types.d.ts';
import type { Screen } from '../world/route.ts';
import type { Heading } from './shell/bar-view.ts';

export interface Shown {
  readonly heading: Heading;
  readonly body: unknown;
}
type ScreenView = (view: View) => Shown;

const here: Partial<Record<Screen, ScreenView>> = { overview, assets: assetsScreen };

const rest = {
  asset: lazy(async () => {
    const [screen] = await Promise.all([
      import('./asset/asset-view.ts'),
      // Its commands ask before they are sent.
      import('./command/confirm.ts'),
      loadStyles('asset.css'),
      loadStyles('controls.css'),
    ]);
    return screen.assetScreen;
  }),
  map: lazy(async () => (await import('./map/map-screen.ts')).mapScreen),
  links: lazy(async () => {
    const [screen] = await Promise.all([import('./links/links-screen.ts'), import('./command/confirm.ts')]);
    return screen.linksScreen;
  }),
  activity: lazy(async () => (await import('./activity/activity-screen.ts')).activityScreen),
  kits: lazy(async () => (await import('./fleet/fleet-screen.ts')).fleetScreen),
  settings: lazy(async () => (await import('./settings/settings-screen.ts')).settingsScreen),
};

/** The question before a risky command. */
export const question = lazy(async () => (await import('./command/confirm.ts')).question);

/** The list of kits in a sheet. */
export const chooser = lazy(async () => (await import('./shell/kit-chooser.ts')).kitChooser);

/** The registration of partner assets. */
export const register = lazy(async () => (await import('./assets/register-view.ts')).registerSheet);

/** The screen of the address; undefined while its module is fetched. */
export function screenOf(view: View): Shown | undefined {
  const { screen } = view.route;
  const known = here[screen];
  if (known) return known(view);
  const later = screen === 'overview' || screen === 'assets' ? undefined : rest[screen];
  later?.load(view.act);
  return later?.now()?.(view);
}

/** Fetches the other screens in idle time, so that they are there when the link is not. */
export function fetchScreens(act: Actions) {
  for (const part of [...Object.values(rest), question, chooser, register]) part.load(act);
}
