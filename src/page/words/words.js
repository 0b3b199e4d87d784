/** The sentences of the page in its language. `t` is replaced when another language is chosen: read it when you draw. */
import { locale } from '../world/units.js';
import { en } from './en.js';

/** @import { Words } from './en.js' */

/** @type {Words} */
export let t = en;

/**
 * Loads a language and uses it from the next drawing on.
 * @param {string} language
 */
export async function useLanguage(language) {
  t = language === 'de' ? (await import('./de.js')).de : en;
  locale.now = language;
  document.documentElement.lang = language;
}
