/** Addresses of the screens, in the fragment (`#`) of the page's address, which no server receives. */
import type { FleetScreen, Route, Screen } from '../types.d.ts';

const kit_form = /^\/k\/([\w-]+)(?:\/(map|assets|files|links|align|activity|settings)|\/a\/([\w-]+))?$/u;

const screens: ReadonlySet<string> = new Set(
  'overview map assets files asset links align activity settings'.split(' '),
);
export const fleet_screens = ['kits', 'alarms', 'log', 'manage'] as const;

/** Reads an address; everything unknown is the overview. `#kit={id}` is the form of earlier versions. */
export function readRoute(hash: string): Route {
  const path = hash.replace(/^#/u, '');
  const ofAll = fleet_screens.find((screen) => path === `/${screen}`);
  if (ofAll) return { screen: ofAll, kit_id: null, asset_id: null };
  const [, kit_id = null, screen = 'overview', asset_id = null] = kit_form.exec(path) ?? [];
  if (kit_id === null) {
    return { screen: 'overview', kit_id: new URLSearchParams(path).get('kit'), asset_id: null };
  }
  if (asset_id !== null) return { screen: 'asset', kit_id, asset_id };
  return { screen: isScreen(screen) ? screen : 'overview', kit_id, asset_id: null };
}

/** Whether the screen shows all kits of the key. */
export function isOfFleet(screen: Screen): screen is FleetScreen {
  return fleet_screens.some((each) => each === screen);
}

function isScreen(text: string): text is Screen {
  return screens.has(text);
}

/** The address of a screen. */
export function addressOf(screen: Screen, kit_id: string | null, asset_id?: string): string {
  if (isOfFleet(screen)) return `#/${screen}`;
  if (kit_id === null) return '#/kits';
  if (screen === 'asset') return `#/k/${kit_id}/a/${asset_id ?? ''}`;
  return screen === 'overview' ? `#/k/${kit_id}` : `#/k/${kit_id}/${screen}`;
}
