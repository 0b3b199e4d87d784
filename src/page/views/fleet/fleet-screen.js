/** All kits of the key, worst first. */
import { duration, freshness } from '../../world/age.js';
import { addressOf } from '../../world/route.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { shape } from '../parts/icon.js';
import { age, name, state } from '../parts/marks.js';
import { searchField } from '../shell/kit-chooser.js';
import { judge } from './judge.js';

/** @import { KitResource, View } from '../../types.d.ts' */
/** @import { Judged } from './judge.js' */

const filters = /** @type {const} */ (['all', 'attention', 'offline']);
const order = { offline: 0, attention: 1, none: 2, online: 3 };

/** @param {View} view */
export function fleetScreen(view) {
  const { choices } = view;
  const all = choices.kits.map((kit) => ({ kit, judged: judge(kit) }));
  const wanted = choices.search.toLowerCase();
  const shown = all
    .filter(
      ({ kit, judged }) =>
        kit.name.toLowerCase().includes(wanted) &&
        (choices.kit_filter === 'all' || judged.state === choices.kit_filter),
    )
    .sort((a, b) => order[a.judged.state] - order[b.judged.state] || (a.kit.name < b.kit.name ? -1 : 1));
  const counts = { all: all.length, attention: countOf(all, 'attention'), offline: countOf(all, 'offline') };
  return {
    heading: {
      title: t.nav.kits,
      tools: html`<span class="cap">${t.kits.summary({ fine: countOf(all, 'online'), ...counts })}</span>`,
    },
    body: html`<div class="page">
      <div class="head wrap fleet-tools">
        ${searchField(view)}
        <div class="chips" role="group" aria-label=${t.kits.filter}>
          ${filters.map((key) => filterChip(key, counts[key], view))}
        </div>
      </div>
      <section class="card fleet" aria-label=${t.nav.kits}>
        ${
          shown.length === 0
            ? html`<p class="empty">${t.kits.noneFound}</p>`
            : html`<ul class="rows">
                ${shown.map(({ kit, judged }) => kitRow(kit, judged, view))}
              </ul>`
        }
      </section>
    </div>`,
  };
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
    ${mark}${key === 'all' ? t.assets.filterAll : t.state[key]} <span class="n">${count}</span>
  </button>`;
}

/**
 * @param {KitResource} kit
 * @param {Judged} judged
 * @param {View} view
 */
function kitRow(kit, judged, view) {
  const city = kit.live?.location?.kit_location;
  const seen = freshness(kit.last_seen, Number.POSITIVE_INFINITY, view, kit.online);
  const since_ms = kit.last_seen ? view.time_ms - Date.parse(kit.last_seen) : 0;
  const why = judged.state === 'offline' ? t.kits.offlineFor(duration(since_ms)) : judged.reasons.join(' ');
  return html`<li key=${kit.id} class="kit-item">
    <a class="kit-row" href=${addressOf('overview', kit.id)}
      ><span class="nm"
        ><b>${name(kit.name)}</b>${city ? html`<span class="cap">${name(city)}</span>` : ''}</span
      >${state(judged.state)}<span class="why">${why || t.attention.nothing}</span
      ><span class="cap battery"
        >${typeof kit.live?.battery === 'number' ? `${Math.round(kit.live.battery)}\u00a0%` : ''}</span
      >${kit.last_seen ? age(seen) : html`<span class="age">${t.kits.never}</span>`}</a
    >
  </li>`;
}
