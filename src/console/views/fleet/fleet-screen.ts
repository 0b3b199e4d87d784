/** All kits of the key, worst first. */
import { byName } from '../../world/text.ts';
import { number } from '../../units.ts';
import { t } from '../../words/words.ts';
import { isWideNow, lostBox, name, chip } from '../parts/marks.ts';
import { html } from '../parts/html.ts';
import { icon, shape } from '../parts/icon.ts';
import { searchField } from '../shell/kit-chooser.ts';
import { fleetMap } from './fleet-map.ts';
import { judge, type Judged } from '../judge.ts';
import { columns, kitHead, KitRows, tagsOf, type Entry } from './kit-rows.ts';
import type { View } from '../../types.d.ts';

const filters = ['all', 'attention', 'offline'] as const;
/** For list and map at once. */
const hasRoom = matchMedia('(min-width: 1500px)');
/** Between two new orders of the same list. */
const reorder_ms = 10_000;

/** The order that is shown: it stays while a person points at the list, so that no row moves under a finger. */
const ordered = { of: '', at_ms: 0, places: new Map() as ReadonlyMap<string, number> };

export function fleetScreen(view: View) {
  const { choices } = view;
  const all = choices.kits.map((kit) => ({ kit, judged: judge(kit) }));
  const wanted = choices.search.trim().toLowerCase();
  const found = all.filter(
    ({ kit, judged }) =>
      matches(kit, wanted) &&
      (choices.kit_filter === 'all' ||
        judged.state === choices.kit_filter ||
        tagsOf(kit).includes(choices.kit_filter)),
  );
  const counts = { all: all.length, attention: countOf(all, 'attention'), offline: countOf(all, 'offline') };
  const tools = toolsView(all, counts, view);
  const isWide = isWideNow();
  const hasList = hasRoom.matches || choices.kit_view === 'list';
  return {
    heading: {
      title: t.nav.kits,
      sub: !isWide && t.kits.summary({ fine: countOf(all, 'online'), ...counts }),
      tools: isWide && tools,
    },
    body: html`<div class="page">
      ${lostBox(view)} ${view.isListOld && html`<p class="fault" role="status">${t.kits.listOld}</p>`}
      ${!isWide && tools}
      <div class="fleet-parts">
        ${hasList && listView(found, `${wanted} ${choices.kit_filter} ${all.length}`, view)}
        ${(hasRoom.matches || choices.kit_view === 'map') && fleetMap(found, view)}
      </div>
    </div>`,
  };
}

function listView(found: readonly Entry[], of: string, view: View) {
  const shown = inOrder(found, of, view.choices.kit_sort);
  return html`<section key="kits" class="card fleet" aria-label=${t.nav.kits}>
    ${kitHead(view)}
    ${
      shown.length === 0
        ? html`<p class="empty">${t.kits.noneFound}</p>`
        : html`<${KitRows} view=${view} entries=${shown} />`
    }
  </section>`;
}

function toolsView(
  all: readonly Entry[],
  counts: Readonly<Record<(typeof filters)[number], number>>,
  view: View,
) {
  const tags = Map.groupBy(
    all.flatMap(({ kit }) => tagsOf(kit)),
    (tag) => tag,
  );
  const marks = {
    all: '',
    attention: html`<span class="state warn">${shape('warn')}</span>`,
    offline: html`<span class="state bad">${shape('off')}</span>`,
  };
  return html`<div class="head fleet-tools">
    ${searchField(view)}
    <div class="chips one-line" role="group" aria-label=${t.kits.filter}>
      ${filters.map((key) => filterChip(key, { text: html`${marks[key]}${key === 'all' ? t.assets.filterAll : t.state[key]}`, count: counts[key] }, view))}
      ${[...tags].sort(([a], [b]) => byName(a, b)).map(([tag, some]) => filterChip(tag, { text: name(tag), count: some.length }, view))}
    </div>
    ${!hasRoom.matches && viewSwitch(view)}
  </div>`;
}

/** List or map, where there is no room for both. */
function viewSwitch({ choices, act }: View) {
  const other = choices.kit_view === 'list' ? 'map' : 'list';
  const change = () => act.choose({ kit_view: other, map: { zoom: 0, center: null, pan: null } });
  return html`<button
    type="button"
    class="icon-btn"
    aria-label=${t.kits.show[other]}
    title=${t.kits.show[other]}
    onClick=${change}
  >
    ${icon(other)}
  </button>`;
}

/**
 * By name or city.
 * @param wanted lower case
 */
function matches({ name, live }: Entry['kit'], wanted: string) {
  if (wanted === '') return true;
  return name.toLowerCase().includes(wanted) || live?.location?.kit_location?.toLowerCase().includes(wanted);
}

/** @param of what is shown; when it or the order changes, the rows are placed anew */
function inOrder(entries: readonly Entry[], of: string, { by, isDown }: View['choices']['kit_sort']) {
  const now_ms = performance.now();
  const isPointedAt = document.querySelector('.kit-list:is(:hover, :focus-within)') !== null;
  const key = `${of} ${by} ${isDown}`;
  if (key !== ordered.of || (now_ms - ordered.at_ms > reorder_ms && !isPointedAt)) {
    const sign = isDown ? -1 : 1;
    const sorted = entries.toSorted((a, b) => sign * columns[by](a, b) || byName(a.kit.name, b.kit.name));
    ordered.places = new Map(sorted.map(({ kit }, i) => [kit.id, i]));
    ordered.of = key;
    ordered.at_ms = now_ms;
    return sorted;
  }
  const placeOf = ({ kit }: Entry) => ordered.places.get(kit.id) ?? entries.length;
  return entries.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function countOf(all: readonly { readonly judged: Judged }[], word: Judged['state']) {
  return all.filter(({ judged }) => judged.state === word).length;
}

/** @param key of a state, or a tag */
function filterChip(
  key: string,
  { text, count }: { readonly text: unknown; readonly count: number },
  { choices, act }: View,
) {
  const choose = () => act.choose({ kit_filter: key });
  const content = html`${text} <span class="n">${number(count)}</span>`;
  return chip(key, content, { isOn: choices.kit_filter === key, choose });
}
