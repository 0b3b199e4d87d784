/** Below a map: how far back the way of the asset is drawn, and the slider. */
import { spanOf } from '../../world/history/history.js';
import { trackNow } from '../../world/history/track.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { rangeChips, scrubber } from './range.js';

/** @import { LiveAsset, View } from '../../types.d.ts' */

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
export function trackBar(asset, view) {
  const read = trackNow(asset, view);
  const isEmpty = read !== undefined && !read.isLoading && read.track.length === 0;
  const empty = read?.fault ? t.history.fault(read.fault) : t.history.noTrack;
  return html`<section key="track" class="card pad track-bar" aria-label=${t.history.track}>
    ${rangeChips(view)} ${isEmpty && html`<p class="cap">${empty}</p>`} ${scrubber(view, spanOf(view))}
  </section>`;
}
