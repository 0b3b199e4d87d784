/** The sentences of the page in its language. `t` is replaced when another language is chosen: read it when you draw. */
import { locale } from '../units.ts';
import { en, type Words } from './en.ts';

export let t: Words = en;

/** Loads a language and uses it from the next drawing on. */
export async function useLanguage(language: string) {
  t = language === 'de' ? (await import('./de.ts')).de : en;
  locale.now = language;
  document.documentElement.lang = language;
}
