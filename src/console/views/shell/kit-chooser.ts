/** The list of kits in a sheet, worst first: search, state and age of each. */
import { freshness } from '../../world/age.ts';
import { addressOf } from '../../world/route.ts';
import { byName, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { age, name, state } from '../parts/marks.ts';
import { judge, type Judged } from '../judge.ts';
import { Sheet } from './sheet.ts';
import type { KitResource, View } from '../../types.d.ts';

const searched_from = 6;
const shown_max = 200;

export function kitChooser(view: View) {
  const { choices, act } = view;
  const wanted = choices.search.toLowerCase();
  const found = choices.kits
    .filter(({ name: text }) => text.toLowerCase().includes(wanted))
    .map((kit) => ({ kit, judged: judge(kit) }))
    .sort((a, b) => b.judged.trouble - a.judged.trouble || byName(a.kit.name, b.kit.name));
  const content = html`
    ${choices.kits.length > 1 && html`<a class="btn main" href="#/kits" onClick=${act.closeSheet}>${t.kits.all}</a>`}
    ${choices.kits.length >= searched_from && searchField(view)}
    <ul class="rows chooser">
      ${found.slice(0, shown_max).map((entry) => kitRow(entry, view))}
    </ul>
    ${found.length === 0 && html`<p class="empty">${t.kits.noneFound}</p>`}
  `;
  return html`<${Sheet} title=${t.kits.choose} content=${content} onClose=${act.closeSheet} />`;
}

export function searchField({ choices, act }: View) {
  const type = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    act.choose({ search: currentTarget.value });
  return html`<label class="find"
    >${icon('search')}<span class="unseen">${t.kits.find}</span
    ><input type="search" placeholder=${t.kits.find} value=${choices.search} onInput=${type}
  /></label>`;
}

function kitRow({ kit, judged }: { readonly kit: KitResource; readonly judged: Judged }, view: View) {
  const { choices, act } = view;
  const seen = freshness(kit.last_seen, Number.POSITIVE_INFINITY, view, kit.online);
  return html`<li key=${kit.id}>
    <a
      class="choose-row"
      href=${addressOf('overview', kit.id)}
      aria-current=${kit.id === choices.kit_id ? 'true' : undefined}
      onClick=${act.closeSheet}
      ><b>${name(plain(kit.name))}</b>${state(judged.state)}${kit.last_seen ? age(seen) : ''}</a
    >
  </li>`;
}
