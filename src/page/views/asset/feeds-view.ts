/** All values of an asset with their ages, folded away: what the pages by type do not show stands here. */
import { feedFreshness } from '../../world/age.ts';
import { isRecord } from '../../world/json.ts';
import { fieldText, label, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { age } from '../parts/marks.ts';
import type { FeedMessage, LiveAsset, View } from '../../types.d.ts';

const list_shown_max = 12;

export function feedsCard(asset: LiveAsset, view: View) {
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

function feedView(asset: LiveAsset, feed: string, { data }: FeedMessage, view: View) {
  const freshness = feedFreshness(asset, feed, view);
  return html`<div key=${feed} class=${freshness.isOld ? 'feed is-old' : 'feed'}>
    <h3><span>${label(feed)}</span> ${age(freshness)}</h3>
    ${isRecord(data) ? values(data) : ''}
  </div>`;
}

function values(data: Readonly<Record<string, unknown>>): unknown {
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

/** A list of objects becomes a separate list, so that nothing is cut off in the middle. */
function valueView(key: string, value: unknown): unknown {
  if (!Array.isArray(value) || !value.some(isRecord)) return html`<bdi>${fieldText(key, value)}</bdi>`;
  const rows = value.slice(0, list_shown_max);
  return html`<ul class="nested">
    ${rows.map((each) => html`<li>${isRecord(each) ? values(each) : plain(each)}</li>`)}
    ${value.length > rows.length ? html`<li class="cap">${t.asset.andMore(value.length - rows.length)}</li>` : ''}
  </ul>`;
}
