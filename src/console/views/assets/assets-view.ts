/** All assets of the kit by their place in the tree, with filters. */
import { own } from '../../json.ts';
import { plain } from '../../world/text.ts';
import { missingOf } from '../../world/age.ts';
import { addressOf } from '../../world/route.ts';
import { assetTree } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { lostBox, chip } from '../parts/marks.ts';
import { html } from '../parts/html.ts';
import { icon, shape } from '../parts/icon.ts';
import { steady } from '../parts/steady.ts';
import { assetRow } from './asset-row.ts';
import type { LiveAsset, View } from '../../types.d.ts';

export function assetsScreen(view: View) {
  const { world, choices } = view;
  const rows = assetTree(world, (asset) => passes(asset, choices.filter));
  const list =
    rows.length === 0
      ? html`<p class="empty">${world.assets.size === 0 ? t.assets.none : t.assets.noMatch}</p>`
      : html`<ul class="rows assets">
          ${rows.map(({ asset, depth }) => assetRow(asset, depth, view))}
        </ul>`;
  return {
    heading: { title: t.nav.assets, isKit: true },
    body: html`<div class="page">
      ${lostBox(view)}
      <h1 class="hero only-phone">${t.nav.assets}</h1>
      <div class="head">
        ${filters(view)}<a class="btn small" href=${addressOf('files', choices.kit_id)}>${t.files.open}</a
        >${registerButton(view)}
      </div>
      <section class="card" id="assets" aria-label=${t.nav.assets}>${list}</section>
    </div>`,
  };
}

function registerButton({ choices, act }: View) {
  if (choices.session && !choices.session.scopes.includes('assets:write')) return '';
  const open = () => act.openSheet('register');
  return html`<button type="button" class="btn small" onClick=${open}>
    ${icon('plus', 's')}${t.register.open}
  </button>`;
}

function passes(asset: LiveAsset, filter: string) {
  if (filter === 'offline') return asset.status === 'offline';
  if (filter === 'degraded') return missingOf(asset).length > 0;
  return filter === 'all' || asset.type === filter.slice('type '.length);
}

function filters({ world, choices, act }: View) {
  const assets = [...world.assets.values()];
  const types = [...Map.groupBy(assets, ({ type }) => type)].sort(([a], [b]) => (a < b ? -1 : 1));
  const offline = assets.filter(({ status }) => status === 'offline').length;
  const degraded = assets.filter((asset) => missingOf(asset).length > 0).length;
  const buttons = [
    { key: 'all', text: t.assets.filterAll, count: assets.length },
    { key: 'offline', text: t.state.offline, count: offline },
    ...(degraded > 0 || choices.filter === 'degraded'
      ? [{ key: 'degraded', text: t.state.degraded, count: degraded }]
      : []),
    ...types.map(([type, list]) => ({
      key: `type ${type}`,
      text: own(t.type, type) ?? plain(type),
      count: list.length,
    })),
  ];
  const draw = () =>
    html`<div class="chips one-line" role="group" aria-label=${t.assets.filter}>
      ${buttons.map(({ key, text, count }) => {
        const choose = () => act.choose({ filter: key });
        const content = html`${key === 'offline' && count > 0 ? html`<span class="state bad">${shape('off')}</span>` : ''}<bdi
            >${text}</bdi
          >
          <span class="n">${count}</span>`;
        return chip(key, content, { isOn: choices.filter === key, choose });
      })}
    </div>`;
  return steady([buttons, choices.filter], draw);
}
