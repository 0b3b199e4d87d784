/** Details of one asset: facts, feeds with their ages, video, commands and their tasks. */
import { assetState, feedFreshness } from '../world/age.js';
import { commandsView } from './command-view.js';
import { copy } from './copy.js';
import { placeText } from '../world/geo.js';
import { html } from './html.js';
import { isRecord } from '../world/json.js';
import { age, fact, name } from './marks.js';
import { placeOfAsset } from '../world/places.js';
import { fieldText, label, plain } from '../world/text.js';
import { Video } from './video.js';

/** @import { FeedMessage, LiveAsset, View } from '../types.d.ts' */

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
export function assetView(asset, view) {
  const { choices, act } = view;
  const isShown = choices.video_asset === asset.id;
  const toggleVideo = () => {
    choices.video_asset = isShown ? null : asset.id;
    act.changed();
  };
  return html`
    ${about(asset, view)}
    ${
      asset.whep_url &&
      html`<div class="video-part">
        <button type="button" aria-expanded=${String(isShown)} onClick=${toggleVideo}>
          ${isShown ? 'Stop video' : 'Show video'}
        </button>
        ${isShown && html`<${Video} key=${asset.whep_url} url=${asset.whep_url} title=${plain(asset.name)} />`}
      </div>`
    }
    ${feedsView(asset, view)} ${commandsView(asset, view)}
  `;
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function about(asset, view) {
  const { vendor, model, protocol, status_reason } = asset;
  const maker = [vendor, model].filter((part) => part !== null).join(' ');
  const place = placeOfAsset(asset, view);
  const reason =
    assetState(asset, view) === 'offline' && status_reason
      ? fact('Offline because', name(status_reason))
      : '';
  const text = place ? placeText(place) : '';
  const copyPlace = () => act(view, copy(text));
  return html`<dl class="facts">
      ${reason} ${fact('Model', maker === '' ? 'not reported' : name(maker))}
      ${fact('Protocol', plain(protocol))}
      ${fact('Position', text === '' ? 'not reported' : html`<span class="place">${text}</span>`, place)}
      ${place && asset.alt_m !== null ? fact('Altitude', `${Math.round(asset.alt_m)} m above the ellipsoid`) : ''}
    </dl>
    ${place && html`<button type="button" onClick=${copyPlace}>Copy position</button>`}`;
}

/**
 * @param {View} view
 * @param {boolean} isCopied
 */
function act({ act: actions }, isCopied) {
  actions.note(isCopied ? 'Position copied' : 'The browser refused to copy the position');
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function feedsView(asset, view) {
  const feeds = Object.entries(view.world.feeds.get(asset.id) ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const missing = asset.feed_names.filter((feed) => !feeds.some(([known]) => known === feed));
  return html`<h4>Feeds</h4>
    ${feeds.map(([feed, message]) => feedView(asset, feed, message, view))}
    ${missing.length > 0 ? html`<p>No data yet: ${plain(missing.map(label).join(', '))}</p>` : ''}
    ${feeds.length === 0 && missing.length === 0 ? html`<p>This asset has no feeds.</p>` : ''}`;
}

/**
 * @param {LiveAsset} asset
 * @param {string} feed
 * @param {FeedMessage} message
 * @param {View} view
 */
function feedView(asset, feed, { data }, view) {
  const freshness = feedFreshness(asset, feed, view);
  const values = isRecord(data) ? Object.entries(data) : [];
  return html`<div key=${feed} class=${freshness.isOld ? 'feed is-old' : 'feed'}>
    <h5>${label(feed)} ${age(freshness)}</h5>
    <dl>
      ${values.map(
        ([key, value]) =>
          html`<div key=${key}>
            <dt>${label(key)}</dt>
            <dd><bdi>${fieldText(key, value)}</bdi></dd>
          </div>`,
      )}
    </dl>
  </div>`;
}
