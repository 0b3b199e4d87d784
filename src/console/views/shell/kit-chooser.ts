/** The list of kits in a sheet: search, state and age of each. */
import { freshness } from '../../world/age.ts';
import { addressOf } from '../../world/route.ts';
import { byName, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { age, name, state } from '../parts/marks.ts';
import { Sheet } from './sheet.ts';
import type { KitResource, View } from '../../types.d.ts';

const searched_from = 6;
const shown_max = 200;

export function kitChooser(view: View) {
  const { choices, act } = view;
  const wanted = choices.search.toLowerCase();
  const found = choices.kits
    .filter(({ name: text }) => text.toLowerCase().includes(wanted))
    .sort((a, b) => byName(a.name, b.name));
  const content = html`
    ${choices.kits.length >= searched_from && searchField(view)}
    <ul class="rows chooser">
      ${found.slice(0, shown_max).map((kit) => kitRow(kit, view))}
    </ul>
    ${found.length === 0 && html`<p class="empty">${t.kits.noneFound}</p>`}
    ${choices.kits.length > 1 && html`<a class="btn" href="#/kits" onClick=${act.closeSheet}>${t.kits.all}</a>`}
  `;
  return html`<${Sheet} title=${t.kits.choose} content=${content} onClose=${act.closeSheet} />`;
}

export function searchField({ choices, act }: View) {
  const type = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    choices.search = currentTarget.value;
    act.changed();
  };
  return html`<label class="find"
    >${icon('search')}<span class="unseen">${t.kits.find}</span
    ><input type="search" placeholder=${t.kits.find} value=${choices.search} onInput=${type}
  /></label>`;
}

function kitRow(kit: KitResource, view: View) {
  const { choices, act } = view;
  const seen = freshness(kit.last_seen, Number.POSITIVE_INFINITY, view, kit.online);
  return html`<li key=${kit.id}>
    <a
      class="choose-row"
      href=${addressOf('overview', kit.id)}
      aria-current=${kit.id === choices.kit_id ? 'true' : undefined}
      onClick=${act.closeSheet}
      ><b>${name(plain(kit.name))}</b>${state(kit.online ? 'online' : kit.last_seen ? 'offline' : 'none')}${
        kit.last_seen ? age(seen) : ''
      }</a
    >
  </li>`;
}
