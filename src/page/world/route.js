/** Addresses of the screens, in the fragment (`#`) of the page's address, which no server receives. */

/** @typedef {'overview' | 'map' | 'assets' | 'asset' | 'links' | 'activity' | 'kits' | 'settings'} Screen */
/** @typedef {{ readonly screen: Screen, readonly kit_id: string | null, readonly asset_id: string | null }} Route */

const kit_form = /^\/k\/([\w-]+)(?:\/(map|assets|links|activity|settings)|\/a\/([\w-]+))?$/u;

/** @type {ReadonlySet<string>} */
const screens = new Set(['overview', 'map', 'assets', 'asset', 'links', 'activity', 'kits', 'settings']);

/**
 * Reads an address; everything unknown is the overview. `#kit={id}` is the form of earlier versions.
 * @param {string} hash
 * @returns {Route}
 */
export function readRoute(hash) {
  const path = hash.replace(/^#/u, '');
  if (path === '/kits') return { screen: 'kits', kit_id: null, asset_id: null };
  const [, kit_id = null, screen = 'overview', asset_id = null] = kit_form.exec(path) ?? [];
  if (kit_id === null) {
    return { screen: 'overview', kit_id: new URLSearchParams(path).get('kit'), asset_id: null };
  }
  if (asset_id !== null) return { screen: 'asset', kit_id, asset_id };
  return { screen: isScreen(screen) ? screen : 'overview', kit_id, asset_id: null };
}

/**
 * @param {string} text
 * @returns {text is Screen}
 */
function isScreen(text) {
  return screens.has(text);
}

/**
 * The address of a screen.
 * @param {Screen} screen
 * @param {string | null} kit_id
 * @param {string} [asset_id]
 * @returns {string}
 */
export function addressOf(screen, kit_id, asset_id) {
  if (screen === 'kits' || kit_id === null) return '#/kits';
  if (screen === 'asset') return `#/k/${kit_id}/a/${asset_id ?? ''}`;
  return screen === 'overview' ? `#/k/${kit_id}` : `#/k/${kit_id}/${screen}`;
}
