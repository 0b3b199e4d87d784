/** All values of an asset with their ages, folded away: what the pages by type do not show stands here. */
import { feedFreshness } from '../../world/age.js';
import { isRecord } from '../../world/json.js';
import { fieldText, label, plain } from '../../world/text.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { age } from '../parts/marks.js';

/** @import { FeedMessage, LiveAsset, View } from '../../types.d.ts' */

const list_shown_max = 12;

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
export function feedsCard(asset, view) {
  const feeds = Object.entries(view.world.feeds.get(asset.id) ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const missing = asset.feed_names.filter((feed) => !feeds.some(([known]) => known === feed));
  return html`<section class="card" id="values">
    <details>
      <summary class="sec">${t.asset.allValues}</summary>
      ${feeds.map(([feed, message]) => feedView(asset, feed, message, view))}
      ${missing.length > 0 ? html`<p class="empty">${t.asset.noDataYet(missing.map(label).join(', '))}</p>` : ''}
      ${feeds.length === 0 && missing.length === 0 ? html`<p class="empty">${t.asset.noFeeds}</p>` : ''}
    </details>
  </section>`;
}

/**
 * @param {LiveAsset} asset
 * @param {string} feed
 * @param {FeedMessage} message
 * @param {View} view
 */
function feedView(asset, feed, { data }, view) {
  const freshness = feedFreshness(asset, feed, view);
  return html`<div key=${feed} class=${freshness.isOld ? 'feed is-old' : 'feed'}>
    <h3><span>${label(feed)}</span> ${age(freshness)}</h3>
    ${isRecord(data) ? values(data) : ''}
  </div>`;
}

/**
 * @param {Readonly<Record<string, unknown>>} data
 * @returns {unknown}
 */
function values(data) {
  return html`<dl>
    ${Object.entries(data).map(
      ([key, value]) =>
        html`<div key=${key}>
          <dt>${label(key)}</dt>
          <dd>${valueView(key, value)}</dd>
        </div>`,
    )}
  </dl>`;
}

/**
 * A list of objects becomes a separate list, so that nothing is cut off in the middle.
 * @param {string} key
 * @param {unknown} value
 * @returns {unknown}
 */
function valueView(key, value) {
  if (!Array.isArray(value) || !value.some(isRecord)) return html`<bdi>${fieldText(key, value)}</bdi>`;
  const rows = value.slice(0, list_shown_max);
  return html`<ul class="nested">
    ${rows.map((each) => html`<li>${isRecord(each) ? values(each) : plain(each)}</li>`)}
    ${value.length > rows.length ? html`<li class="cap">${t.asset.andMore(value.length - rows.length)}</li>` : ''}
  </ul>`;
}
