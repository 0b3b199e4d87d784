/** Shared elements of the views: names, ages, states. A state is always a shape and a word, never a colour alone. */
import { duration } from '../../world/age.js';
import { plain } from '../../world/text.js';
import { t } from '../../words/words.js';
import { html } from './html.js';
import { shape } from './icon.js';

/** @import { Shape } from './icon.js' */
/** @import { Freshness } from '../../types.d.ts' */

/** @typedef {'good' | 'idle' | 'warn' | 'bad'} Kind */

/**
 * Shows a foreign name, isolated from the text direction around it.
 * @param {string} text
 */
export function name(text) {
  return html`<bdi>${plain(text)}</bdi>`;
}

/**
 * Shows the age of a value, in the same form everywhere.
 * @param {Freshness} freshness
 */
export function age({ age_ms, isOld }) {
  if (age_ms === null) return html`<span class="age">${t.age.unknown}</span>`;
  const text = ageText(age_ms);
  if (isOld) return html`<span class="age old">${t.age.old(text)}</span>`;
  return html`<span class="age" title=${t.age.ago(text)}>${text}</span>`;
}

/** @param {number} age_ms */
export function ageText(age_ms) {
  return age_ms < 1_000 ? t.age.subSecond : duration(age_ms);
}

/** @type {Readonly<Record<string, readonly [kind: Kind, shape: Shape]>>} */
const looks = {
  online: ['good', 'on'],
  inUse: ['good', 'on'],
  live: ['good', 'on'],
  flying: ['good', 'on'],
  completed: ['good', 'on'],
  attention: ['warn', 'warn'],
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

/** @typedef {keyof import('../../words/en.js').Words['state']} StateWord */

/**
 * A state as shape and word.
 * @param {StateWord} word
 * @param {{ readonly isPill?: boolean, readonly more?: unknown }} [about]
 */
export function state(word, { isPill = false, more = '' } = {}) {
  const [kind, form] = looks[word] ?? ['idle', 'ring'];
  return html`<span class=${`state ${kind} ${isPill ? 'pill' : ''}`}
    >${shape(form)}<span>${t.state[word]}${more}</span></span
  >`;
}

/**
 * A named value of a list of facts.
 * @param {string} term
 * @param {unknown} value
 * @param {Freshness & { readonly isNamed?: boolean }} [freshness] `isNamed`: the card names it for all its values
 */
export function fact(term, value, freshness) {
  return html`<div class=${freshness?.isOld ? 'fact is-old' : 'fact'}>
    <dt>${term} ${freshness && !freshness.isNamed ? age(freshness) : ''}</dt>
    <dd>${value}</dd>
  </div>`;
}

/**
 * A card with its heading.
 * @param {string} id
 * @param {unknown} title
 * @param {unknown} content
 * @param {unknown} [aside] beside the heading
 */
export function card(id, title, content, aside = '') {
  return html`<section class="card" id=${id} aria-labelledby=${`${id}-title`}>
    <header>
      <h2 class="sec" id=${`${id}-title`}>${title}</h2>
      ${aside}
    </header>
    ${content}
  </section>`;
}
