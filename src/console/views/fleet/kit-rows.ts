/** The rows of the list of kits. Only rows near the window exist, so that a thousand kits cost as much as thirty. */
import { freshness } from '../../world/age.ts';
import { duration, number } from '../../units.ts';
import { addressOf } from '../../world/route.ts';
import { byName, plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfLink } from '../parts/icon.ts';
import { age, name, state } from '../parts/marks.ts';
import { Component, createRef } from 'preact';
import type { Column, KitResource, View } from '../../types.d.ts';
import { assetsOffline, type Judged } from '../judge.ts';

export interface Entry {
  readonly kit: KitResource;
  readonly judged: Judged;
}

/** Rows beyond the window on either side: Tab reaches them before they are needed. */
const beyond = 10;
/** Until a row was measured. */
const row_px_first = 84;

export class KitRows extends Component<
  { view: View; entries: readonly Entry[] },
  { first: number; last: number; row_px: number }
> {
  override state: { first: number; last: number; row_px: number } = {
    first: 0,
    last: 2 * beyond,
    row_px: row_px_first,
  };
  #list = createRef<HTMLElement>();
  #unmounted = new AbortController();

  override componentDidMount() {
    const { signal } = this.#unmounted;
    addEventListener('scroll', () => this.#look(), { signal, passive: true });
    addEventListener('resize', () => this.#look(), { signal });
    this.#look();
  }

  override componentDidUpdate() {
    this.#look();
  }

  override componentWillUnmount() {
    this.#unmounted.abort();
  }

  /** Finds the rows near the window. All rows are equally high; their height depends on the width and the size of text. */
  #look() {
    const list = this.#list.current;
    if (!list) return;
    const measured = list.querySelector('.kit-item')?.getBoundingClientRect().height;
    const row_px = measured === undefined || measured === 0 ? this.state.row_px : measured;
    const top = -list.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / row_px) - beyond);
    const last = Math.max(2 * beyond, Math.ceil((top + innerHeight) / row_px) + beyond);
    const { state: before } = this;
    if (first !== before.first || last !== before.last || row_px !== before.row_px)
      this.setState({ first, last, row_px });
  }

  override render() {
    const { view, entries } = this.props;
    const { first, last, row_px } = this.state;
    const from = Math.min(first, entries.length);
    const shown = entries.slice(from, last);
    const after = Math.max(0, entries.length - from - shown.length);
    return html`<ul
      class="rows kit-list"
      ref=${this.#list}
      style=${{ paddingTop: `${from * row_px}px`, paddingBottom: `${after * row_px}px` }}
    >
      ${shown.map((entry, i) => kitRow(entry, view, { position: from + i + 1, all: entries.length }))}
    </ul>`;
  }
}

/** What the list may be ordered by, and how; each column of the wide list is one. */
export const columns: Readonly<Record<Column, (a: Entry, b: Entry) => number>> = {
  state: (a, b) => b.judged.trouble - a.judged.trouble,
  name: (a, b) => byName(a.kit.name, b.kit.name),
  link: (a, b) => knownFirst(a.kit.summary.latency_ms, b.kit.summary.latency_ms),
  battery: (a, b) => knownFirst(a.kit.summary.battery, b.kit.summary.battery),
  assets: (a, b) => assetsOffline(b.kit) - assetsOffline(a.kit),
  seen: (a, b) => (b.kit.last_seen ?? '').localeCompare(a.kit.last_seen ?? ''),
};

/** What is not known comes last. */
function knownFirst(a: number | null | undefined, b: number | null | undefined) {
  if (typeof a !== 'number' || typeof b !== 'number')
    return Number(typeof a !== 'number') - Number(typeof b !== 'number');
  return a - b;
}

/** The heads of the columns, which order the list; from 900 px. */
export function kitHead({ choices, act }: View) {
  const { by, isDown } = choices.kit_sort;
  return html`<div class="kit-row kit-head" role="group" aria-label=${t.kits.sortBy}>
    ${(['state', 'name', 'why', 'link', 'battery', 'assets', 'seen'] as const).map((column) => {
      if (column === 'why') return html`<span key=${column} class="why">${t.kits.column.why}</span>`;
      const choose = () => act.choose({ kit_sort: { by: column, isDown: by === column && !isDown } });
      return html`<button type="button" key=${column} aria-pressed=${String(by === column)} onClick=${choose}>
        ${t.kits.column[column]}${by === column ? (isDown ? ' ▴' : ' ▾') : ''}
      </button>`;
    })}
  </div>`;
}

function kitRow(
  { kit, judged }: Entry,
  view: View,
  { position, all }: { readonly position: number; readonly all: number },
) {
  const city = kit.live?.location?.kit_location;
  const seen = freshness(kit.last_seen, Number.POSITIVE_INFINITY, view, kit.online && !view.isListOld);
  const since_ms = kit.last_seen ? view.time_ms - Date.parse(kit.last_seen) : 0;
  const why = judged.state === 'offline' ? t.kits.offlineFor(duration(since_ms)) : judged.reasons.join(' ');
  const isKnown = judged.state === 'offline' || judged.state === 'none' || !view.isListOld;
  const tags = tagsOf(kit);
  return html`<li key=${kit.id} class="kit-item" aria-posinset=${position} aria-setsize=${all}>
    <a class="kit-row" href=${addressOf('overview', kit.id)}
      >${state(isKnown ? judged.state : 'wasOnline')}<span class="nm" title=${plain(kit.name)}
        ><b>${name(kit.name)}</b
        >${city ? html`<span class="cap">${name(city)}</span>` : ''}${tags.map((tag) => html`<span key=${tag} class="tag">${name(tag)}</span>`)}</span
      ><span class="why" title=${why}>${why}</span
      >${figures(kit)}${kit.last_seen ? age(seen) : html`<span class="age">${t.kits.never}</span>`}</a
    >
  </li>`;
}

/** Words by which the operator groups kits. */
export function tagsOf({ tags = [] }: KitResource): readonly string[] {
  return tags;
}

function figures({ summary: { link, latency_ms, battery, assets }, online }: KitResource) {
  return html`<span class="cap with-icon"
      >${
        link &&
        online &&
        html`${icon(iconOfLink(link.type), 's')}${latency_ms === undefined ? '' : `${Math.round(latency_ms)}\u00a0ms`}`
      }</span
    ><span class="cap with-icon"
      >${typeof battery === 'number' && html`${icon('battery', 's')}${Math.round(battery)} %`}</span
    ><span class="cap with-icon assets-of"
      >${assets.total > 0 && html`${icon('box', 's')}<span>${number(assets.online)}/${number(assets.total)}</span>`}</span
    >`;
}
