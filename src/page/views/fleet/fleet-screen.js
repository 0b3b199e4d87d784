/** All kits of the key, worst first. */
import { byName } from '../../world/text.js';
import { number } from '../../world/units.js';
import { t } from '../../words/words.js';
import { lostBox } from '../overview/overview-view.js';
import { html } from '../parts/html.js';
import { shape } from '../parts/icon.js';
import { searchField } from '../shell/kit-chooser.js';
import { fleetMap } from './fleet-map.js';
import { judge } from './judge.js';
import { KitRows } from './kit-rows.js';

/** @import { View } from '../../types.d.ts' */
/** @import { Judged } from './judge.js' */
/** @import { Entry } from './kit-rows.js' */

const filters = /** @type {const} */ (['all', 'attention', 'offline']);
/** For a map beside the list. */
const hasRoom = matchMedia('(min-width: 1100px)');
/** Between two new orders of the same list. */
const reorder_ms = 10_000;

/** The order that is shown: it stays while a person points at the list, so that no row moves under a finger. */
const ordered = { of: '', at_ms: 0, places: /** @type {ReadonlyMap<string, number>} */ (new Map()) };

/** @param {View} view */
export function fleetScreen(view) {
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
 * @param {Entry['kit']} kit
 * @param {string} wanted lower case
 */
function matches({ name, live }, wanted) {
  if (wanted === '') return true;
  return name.toLowerCase().includes(wanted) || live?.location?.kit_location?.toLowerCase().includes(wanted);
}

/**
 * @param {readonly Entry[]} entries
 * @param {string} of what is shown; when it changes, the order is new
 * @returns {readonly Entry[]} worst first
 */
function inOrder(entries, of) {
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
  const placeOf = (/** @type {Entry} */ { kit }) => ordered.places.get(kit.id) ?? entries.length;
  return entries.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/**
 * @param {readonly { readonly judged: Judged }[]} all
 * @param {Judged['state']} word
 */
function countOf(all, word) {
  return all.filter(({ judged }) => judged.state === word).length;
}

/**
 * @param {typeof filters[number]} key
 * @param {number} count
 * @param {View} view
 */
function filterChip(key, count, { choices, act }) {
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
