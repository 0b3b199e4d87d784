/** Below a map: how far back the way of the asset is drawn, and the slider. */
import { spanOf } from '../../world/history/history.ts';
import { trackNow } from '../../world/history/track.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { rangeChips, scrubber } from './range.ts';
import type { LiveAsset, View } from '../../types.d.ts';

export function trackBar(asset: LiveAsset, view: View) {
  const read = trackNow(asset, view);
  const isEmpty = read !== undefined && !read.isLoading && read.track.length === 0;
  const empty = read?.fault ? t.history.fault(read.fault) : t.history.noTrack;
  return html`<section key="track" class="card pad track-bar" aria-label=${t.history.track}>
    ${rangeChips(view)} ${isEmpty && html`<p class="cap">${empty}</p>`} ${scrubber(view, spanOf(view))}
  </section>`;
}
