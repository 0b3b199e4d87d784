/** Shared elements of the views: names, ages, states. A state is always a word and a shape, never a colour alone. */
import { duration } from '../world/age.js';
import { html } from './html.js';
import { plain } from '../world/text.js';

/** @import { VNode } from '../preact.js' */
/** @import { Freshness } from '../types.d.ts' */

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
  if (age_ms === null) return html`<span class="age">time unknown</span>`;
  if (isOld) return html`<span class="age old"><b>OLD</b> ${duration(age_ms)}</span>`;
  return html`<span class="age">${duration(age_ms)} ago</span>`;
}

/** @type {Readonly<Record<string, readonly [shape: string, kind: string]>>} */
const looks = {
  online: ['●', 'good'],
  connected: ['●', 'good'],
  completed: ['✔', 'good'],
  standby: ['◐', 'mid'],
  pending: ['…', 'mid'],
  running: ['▶', 'mid'],
  'was online': ['◌', 'mid'],
  unknown: ['?', 'mid'],
  offline: ['○', 'bad'],
  failed: ['✖', 'bad'],
};

/**
 * A state as shape and word.
 * @param {string} word
 */
export function state(word) {
  const [shape, kind] = looks[word] ?? ['·', 'mid'];
  return html`<span class=${`state ${kind}`}
    ><span class="shape" aria-hidden="true">${shape}</span> ${word}</span
  >`;
}

/**
 * A named value of a list of facts.
 * @param {string} term
 * @param {unknown} value
 * @param {Freshness} [freshness]
 */
export function fact(term, value, freshness) {
  const wide = term === 'Position' ? ' wide' : '';
  return html`<div class=${`fact${wide}${freshness?.isOld ? ' is-old' : ''}`}>
    <dt>${term} ${freshness ? age(freshness) : ''}</dt>
    <dd>${value}</dd>
  </div>`;
}

/**
 * @param {string} id
 * @param {VNode | string} title
 * @param {unknown} content
 * @returns {VNode}
 */
export function section(id, title, content) {
  return html`<section id=${id} aria-labelledby=${`${id}-title`}>
    <h2 id=${`${id}-title`}>${title}</h2>
    ${content}
  </section>`;
}
