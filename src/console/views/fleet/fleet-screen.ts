/** All kits of the key, worst first. */
import { byName } from '../../world/text.ts';
import { number } from '../../units.ts';
import { t } from '../../words/words.ts';
import { lostBox } from '../parts/marks.ts';
import { html } from '../parts/html.ts';
import { shape } from '../parts/icon.ts';
import { searchField } from '../shell/kit-chooser.ts';
import { fleetMap } from './fleet-map.ts';
import { judge, type Judged } from './judge.ts';
import { KitRows, type Entry } from './kit-rows.ts';
import type { View } from '../../types.d.ts';

const filters = ['all', 'attention', 'offline'] as const;
/** For a map beside the list. */
const hasRoom = matchMedia('(min-width: 1100px)');
/** Between two new orders of the same list. */
const reorder_ms = 10_000;

/** The order that is shown: it stays while a person points at the list, so that no row moves under a finger. */
const ordered = { of: '', at_ms: 0, places: new Map() as ReadonlyMap<string, number> };

export function fleetScreen(view: View) {
  const { choices } = view;
  const all = choices.kits.map((kit) => ({ kit, judged: judge(kit) }));
  const wanted = choices.search.trim().toLowerCase();
  const shown = inOrder(
    all.filter(
      ({ kit, judged }) =>
        matches(kit, wanted) && (choices.kit_filter === 'all' || judged.state === choices.kit_filter),
    ),
    `${wanted} ${choices.kit_filter} ${all.length}`,
  );
  const counts = { all: all.length, attention: countOf(all, 'attention'), offline: countOf(all, 'offline') };
  return {
    heading: {
      title: t.nav.kits,
      tools: html`<span class="cap">${t.kits.summary({ fine: countOf(all, 'online'), ...counts })}</span>`,
    },
    body: html`<div class="page">
      ${lostBox(view)} ${view.isListOld && html`<p class="fault" role="status">${t.kits.listOld}</p>`}
      <div class="head wrap fleet-tools">
        ${searchField(view)}
        <div class="chips" role="group" aria-label=${t.kits.filter}>
          ${filters.map((key) => filterChip(key, counts[key], view))}
        </div>
      </div>
      <div class="fleet-parts">
        <section key="kits" class="card fleet" aria-label=${t.nav.kits}>
          ${
            shown.length === 0
              ? html`<p class="empty">${t.kits.noneFound}</p>`
              : html`<${KitRows} view=${view} entries=${shown} />`
          }
        </section>
        ${hasRoom.matches && fleetMap(all, view)}
      </div>
    </div>`,
  };
}

/**
 * By name or city.
 * @param wanted lower case
 */
function matches({ name, live }: Entry['kit'], wanted: string) {
  if (wanted === '') return true;
  return name.toLowerCase().includes(wanted) || live?.location?.kit_location?.toLowerCase().includes(wanted);
}

/**
 * @param of what is shown; when it changes, the order is new
 * @returns worst first
 */
function inOrder(entries: readonly Entry[], of: string): readonly Entry[] {
  const now_ms = performance.now();
  const isPointedAt = document.querySelector('.fleet:is(:hover, :focus-within)') !== null;
  if (of !== ordered.of || (now_ms - ordered.at_ms > reorder_ms && !isPointedAt)) {
    const sorted = entries.toSorted(
      (a, b) => b.judged.trouble - a.judged.trouble || byName(a.kit.name, b.kit.name),
    );
    ordered.places = new Map(sorted.map(({ kit }, i) => [kit.id, i]));
    ordered.of = of;
    ordered.at_ms = now_ms;
    return sorted;
  }
  const placeOf = ({ kit }: Entry) => ordered.places.get(kit.id) ?? entries.length;
  return entries.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function countOf(all: readonly { readonly judged: Judged }[], word: Judged['state']) {
  return all.filter(({ judged }) => judged.state === word).length;
}

function filterChip(key: (typeof filters)[number], count: number, { choices, act }: View) {
  const choose = () => {
    choices.kit_filter = key;
    act.changed();
  };
  const mark = {
    all: '',
    attention: html`<span class="state warn">${shape('warn')}</span>`,
    offline: html`<span class="state bad">${shape('off')}</span>`,
  }[key];
  return html`<button
    type="button"
    key=${key}
    class="chip"
    aria-pressed=${String(choices.kit_filter === key)}
    onClick=${choose}
  >
    ${mark}${key === 'all' ? t.assets.filterAll : t.state[key]} <span class="n">${number(count)}</span>
  </button>`;
}
