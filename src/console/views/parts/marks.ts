/** Shared elements of the views: names, ages, states. A state is always a shape and a word, never a colour alone. */
import { clock, duration } from '../../units.ts';
import { elapsed_ms } from '../../world/elapsed.ts';
import { plain, sentence_chars_max } from '../../world/text.ts';
import type { Words } from '../../words/en.ts';
import { t } from '../../words/words.ts';
import { html } from './html.ts';
import { shape, type Shape } from './icon.ts';
import type { Freshness, View } from '../../types.d.ts';

type Kind = 'good' | 'idle' | 'warn' | 'bad';

/** Shows a foreign name, isolated from the text direction around it. */
export function name(text: string) {
  return html`<bdi>${plain(text)}</bdi>`;
}

/** The same for a sentence of a kit or a device. */
export function sentence(text: string) {
  return html`<bdi>${plain(text, sentence_chars_max)}</bdi>`;
}

/** Shows the age of a value, in the same form everywhere. */
export function age({ age_ms, isOld }: Freshness) {
  if (age_ms === null) return html`<span class="age">${t.age.unknown}</span>`;
  const text = ageText(age_ms);
  if (isOld) return html`<span class="age old">${t.age.old(text)}</span>`;
  return html`<span class="age" title=${t.age.ago(text)}>${text}</span>`;
}

export function ageText(age_ms: number) {
  return age_ms < 1_000 ? t.age.subSecond : duration(age_ms);
}

const looks: Readonly<Record<string, readonly [kind: Kind, shape: Shape]>> = {
  online: ['good', 'on'],
  inUse: ['good', 'on'],
  live: ['good', 'on'],
  flying: ['good', 'on'],
  completed: ['good', 'on'],
  attention: ['warn', 'warn'],
  degraded: ['warn', 'warn'],
  warning: ['warn', 'warn'],
  standby: ['idle', 'half'],
  pending: ['idle', 'half'],
  running: ['idle', 'half'],
  connecting: ['idle', 'half'],
  wasOnline: ['idle', 'ring'],
  wasInUse: ['idle', 'ring'],
  wasStandby: ['idle', 'ring'],
  wasOffline: ['idle', 'ring'],
  unknown: ['idle', 'ring'],
  none: ['idle', 'ring'],
  loggedOut: ['idle', 'ring'],
  offline: ['bad', 'off'],
  lost: ['bad', 'off'],
  failed: ['bad', 'off'],
};

export type StateWord = keyof Words['state'];

/** A state as shape and word. */
export function state(
  word: StateWord,
  { isPill = false, more = '' }: { readonly isPill?: boolean; readonly more?: unknown } = {},
) {
  const [kind, form] = looks[word] ?? ['idle', 'ring'];
  return html`<span class=${`state ${kind} ${isPill ? 'pill' : ''}`}
    >${shape(form)}<span>${t.state[word]}${more}</span></span
  >`;
}

/**
 * A named value of a list of facts.
 * @param freshness `isNamed`: the card names it for all its values
 */
export function fact(term: string, value: unknown, freshness?: Freshness & { readonly isNamed?: boolean }) {
  return html`<div class=${freshness?.isOld ? 'fact is-old' : 'fact'}>
    <dt>${term} ${freshness && !freshness.isNamed ? age(freshness) : ''}</dt>
    <dd>${value}</dd>
  </div>`;
}

/**
 * A card with its heading.
 * @param aside beside the heading
 */
export function card(id: string, title: unknown, content: unknown, aside: unknown = '') {
  return html`<section class="card" id=${id} aria-labelledby=${`${id}-title`}>
    <header>
      <h2 class="sec" id=${`${id}-title`}>${title}</h2>
      ${aside}
    </header>
    ${content}
  </section>`;
}

const wide = globalThis.matchMedia?.('(min-width: 900px)');

export function isWideNow(): boolean {
  return wide?.matches ?? false;
}
/** While the page's link is lost: since when what is shown is known. */
export function lostBox({ link, world, time_ms }: View) {
  if (link.state !== 'lost' || !world.kit) return '';
  const since_ms = time_ms - (elapsed_ms() - link.since_ms);
  return html`<section key="lost" class="card notice" role="status">
    <b>${t.lost.title}</b><span>${t.lost.text(clock(since_ms, { isExact: true }))}</span>
  </section>`;
}

/** One of several choices; `isOn`: it is chosen. */
export function chip(
  key: string | number,
  content: unknown,
  { isOn, choose }: { readonly isOn: boolean; readonly choose: () => void },
) {
  return html`<button type="button" key=${key} class="chip" aria-pressed=${String(isOn)} onClick=${choose}>
    ${content}
  </button>`;
}
