/** The rows of the list of kits. Only rows near the window exist, so that a thousand kits cost as much as thirty. */
import { freshness } from '../../world/age.ts';
import { duration } from '../../units.ts';
import { addressOf } from '../../world/route.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfLink } from '../parts/icon.ts';
import { age, name, state } from '../parts/marks.ts';
import { Component } from 'preact';
import type { KitResource, View } from '../../types.d.ts';
import type { Judged } from './judge.ts';

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
  #list: HTMLElement | null = null;
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

  #keep = (element: HTMLElement | null) => {
    this.#list = element;
  };

  /** Finds the rows near the window. All rows are equally high; their height depends on the width and the size of text. */
  #look() {
    const list = this.#list;
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
      ref=${this.#keep}
      style=${{ paddingTop: `${from * row_px}px`, paddingBottom: `${after * row_px}px` }}
    >
      ${shown.map((entry, i) => kitRow(entry, view, { position: from + i + 1, all: entries.length }))}
    </ul>`;
  }
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
  return html`<li key=${kit.id} class="kit-item" aria-posinset=${position} aria-setsize=${all}>
    <a class="kit-row" href=${addressOf('overview', kit.id)}
      ><span class="nm"
        ><b>${name(kit.name)}</b>${city ? html`<span class="cap">${name(city)}</span>` : ''}</span
      >${state(isKnown ? judged.state : 'wasOnline')}<span class="why">${why || t.attention.nothing}</span
      >${figures(kit)}${kit.last_seen ? age(seen) : html`<span class="age">${t.kits.never}</span>`}</a
    >
  </li>`;
}

function figures({ summary, live, online }: KitResource) {
  const battery = summary?.battery ?? live?.battery;
  const latency_ms = summary?.latency_ms;
  return html`<span class="cap battery"
    >${
      summary?.link &&
      online &&
      html`<span class="with-icon"
        >${icon(iconOfLink(summary.link.type), 's')}${latency_ms === undefined ? '' : `${Math.round(latency_ms)}\u00a0ms`}</span
      >`
    }
    ${typeof battery === 'number' && html`<span class="with-icon">${icon('battery', 's')}${Math.round(battery)} %</span>`}</span
  >`;
}
