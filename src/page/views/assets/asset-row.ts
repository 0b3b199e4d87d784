/** One row of an asset: what it is, its most important values, its state and age. */
import { assetState, freshness, isAssetReachable, lastMessageTime } from '../../world/age.ts';
import { addressOf } from '../../world/route.ts';
import { assetTree } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfType } from '../parts/icon.ts';
import { age, ageText, card, name, state } from '../parts/marks.ts';
import { steady } from '../parts/steady.ts';
import { summaryOf, summaryView } from './summary.ts';
import type { LiveAsset, View } from '../../types.d.ts';

const depth_max = 4;
const shown_max = 12;

/** The assets on the overview. */
export function assetsCard(view: View) {
  const { world, choices } = view;
  const rows = assetTree(world, () => true);
  const online = [...world.assets.values()].filter((asset) => assetState(asset, view) === 'online').length;
  const href = addressOf('assets', choices.kit_id);
  const content =
    rows.length === 0
      ? html`<p class="empty">${t.assets.none}</p>`
      : html`<ul class="rows assets">
            ${rows.slice(0, shown_max).map(({ asset, depth }) => assetRow(asset, depth, view))}
          </ul>
          ${rows.length > shown_max && html`<a class="btn plain more" href=${href}>${t.assets.all(rows.length)}</a>`}`;
  return card(
    'assets',
    html`<a href=${href}>${t.nav.assets}</a>`,
    content,
    html`<span class="cap"
      >${rows.length > 0 ? t.assets.online({ online, all: world.assets.size }) : ''}</span
    >`,
  );
}

/** The state of an asset as a word of the page. */
export function stateWord(asset: LiveAsset, view: View) {
  const now = assetState(asset, view);
  return now === 'was online' ? 'wasOnline' : now;
}

export function assetRow(asset: LiveAsset, depth: number, view: View) {
  const { choices, world } = view;
  const { id, type } = asset;
  const seen = freshness(
    lastMessageTime(asset, world.feeds.get(id)),
    Number.POSITIVE_INFINITY,
    view,
    isAssetReachable(asset, view),
  );
  const facts = summaryOf(asset, view);
  const word = stateWord(asset, view);
  const row = `asset-row depth-${Math.min(depth, depth_max)}`;
  const href = addressOf('asset', choices.kit_id, id);
  const seenText = seen.age_ms === null ? null : ageText(seen.age_ms);
  const shown = [row, href, type, asset.name, facts, word, seenText, seen.isOld];
  const draw = () =>
    html`<li>
      <a class=${row} href=${href}
        >${icon(iconOfType(type))}<span class="nm"
          ><b>${name(asset.name)}</b><span class="cap">${summaryView(facts)}</span></span
        >${state(word)}${age(seen)}</a
      >
    </li>`;
  return steady(shown, draw, id);
}
