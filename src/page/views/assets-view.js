/** The assets as a tree; one of them opens in place. */
import { assetState, feedFreshness, freshness, isAssetReachable, lastMessageTime } from '../world/age.js';
import { assetView } from './asset-view.js';
import { bearingText } from '../world/geo.js';
import { html } from './html.js';
import { age, name, section, state } from './marks.js';
import { placeOfAsset, placeOfKit } from '../world/places.js';
import { plain } from '../world/text.js';
import { assetTree, fieldOf, numberOf } from '../world/world.js';

/** @import { LiveAsset, View } from '../types.d.ts' */

const depth_max = 4;

/** @param {View} view */
export function assetsView(view) {
  const { world, choices } = view;
  if (world.assets.size === 0) return section('assets', 'Assets', html`<p>No asset reported yet</p>`);
  const rows = assetTree(world, (asset) => passes(asset, choices.filter));
  return section(
    'assets',
    'Assets',
    html`${filters(view)}
      <ul class="rows assets">
        ${rows.map(({ asset, depth }) => assetRow(asset, depth, view))}
      </ul>
      ${rows.length === 0 ? html`<p>No asset matches the filter.</p>` : ''}`,
  );
}

/**
 * @param {LiveAsset} asset
 * @param {string} filter
 */
function passes(asset, filter) {
  if (filter === 'offline') return asset.status === 'offline';
  return filter === 'all' || asset.type === filter.slice('type '.length);
}

/** @param {View} view */
function filters({ world, choices, act }) {
  const assets = [...world.assets.values()];
  const types = [...Map.groupBy(assets, ({ type }) => type)].sort(([a], [b]) => (a < b ? -1 : 1));
  const offline = assets.filter(({ status }) => status === 'offline').length;
  const buttons = [
    { key: 'all', text: 'All', count: assets.length },
    { key: 'offline', text: 'Offline', count: offline },
    ...types.map(([type, list]) => ({ key: `type ${type}`, text: plain(type), count: list.length })),
  ];
  return html`<div class="filters" role="group" aria-label="Show which assets">
    ${buttons.map(({ key, text, count }) => {
      const choose = () => {
        choices.filter = key;
        act.changed();
      };
      return html`<button
        key=${key}
        type="button"
        aria-pressed=${String(choices.filter === key)}
        onClick=${choose}
      >
        <bdi>${text}</bdi> ${count}
      </button>`;
    })}
  </div>`;
}

/**
 * @param {LiveAsset} asset
 * @param {number} depth
 * @param {View} view
 */
function assetRow(asset, depth, view) {
  const { choices, act, world } = view;
  const isOpen = choices.open_asset === asset.id;
  const toggle = () => {
    choices.open_asset = isOpen ? null : asset.id;
    choices.video_asset = null;
    act.changed();
  };
  const seen = freshness(
    lastMessageTime(asset, world.feeds.get(asset.id)),
    Number.POSITIVE_INFINITY,
    view,
    isAssetReachable(asset, view),
  );
  return html`<li key=${asset.id} class=${`depth-${Math.min(depth, depth_max)} ${isOpen ? 'open' : ''}`}>
    <h3>
      <button
        type="button"
        class="asset-row"
        aria-expanded=${String(isOpen)}
        aria-controls=${`asset-${asset.id}`}
        onClick=${toggle}
      >
        <span class="head"
          ><b>${depth > 0 ? '└ ' : ''}${name(asset.name)}</b> ${state(assetState(asset, view))}</span
        >
        <span class="sub"><span>${summary(asset, view)}</span> ${age(seen)}</span>
      </button>
    </h3>
    <div id=${`asset-${asset.id}`} class="asset-detail" hidden=${!isOpen}>
      ${isOpen && assetView(asset, view)}
    </div>
  </li>`;
}

/**
 * Summarises the most important values in one line: current values first, then old ones.
 * @param {LiveAsset} asset
 * @param {View} view
 */
function summary(asset, view) {
  const facts = [...feedFacts(asset, view), ...placeFacts(asset, view)];
  const current = [plain(asset.type), ...facts.filter(({ isOld }) => !isOld).map(({ text }) => text)];
  const old = facts.filter(({ isOld }) => isOld).map(({ text }) => text);
  return html`<bdi>${current.join(', ')}</bdi
    >${old.length > 0 ? html`<span class="was">, was: <bdi>${old.join(', ')}</bdi></span>` : ''}`;
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function feedFacts(asset, view) {
  const { sys_status, battery, motion, ai_detection } = view.world.feeds.get(asset.id) ?? {};
  const mode = fieldOf(sys_status, 'flight_mode');
  const armed = fieldOf(sys_status, 'armed');
  const remaining = numberOf(battery, 'remaining_pct');
  const types = fieldOf(ai_detection, 'types');
  /** @type {readonly (readonly [feed: string, text: string | undefined])[]} */
  const texts = [
    ['sys_status', typeof mode === 'string' ? plain(mode) : undefined],
    ['sys_status', typeof armed === 'boolean' ? (armed ? 'ARMED' : 'disarmed') : undefined],
    ['battery', remaining === undefined ? undefined : `battery ${Math.round(remaining)} %`],
    ['motion', fieldOf(motion, 'detected') === true ? 'MOTION' : undefined],
    ['ai_detection', Array.isArray(types) && types.length > 0 ? plain(types.join(', ')) : undefined],
  ];
  return texts.flatMap(([feed, text]) =>
    text === undefined ? [] : [{ text, isOld: feedFreshness(asset, feed, view).isOld }],
  );
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function placeFacts(asset, view) {
  const from = placeOfKit(view);
  const to = placeOfAsset(asset, view);
  return from && to ? [{ text: bearingText(from, to), isOld: to.isOld }] : [];
}
