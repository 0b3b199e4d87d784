/** Shortcuts of the keyboard, as in Linear: `g` and a letter go to a screen, `/` finds, `?` lists them. None sends a command. */
import { settings } from '../../settings.ts';
import { addressOf } from '../../world/route.ts';
import type { Actions, Screen } from '../../types.d.ts';

/** The letter after `g`. */
export const places: Readonly<Record<string, Exclude<Screen, 'asset'>>> = {
  k: 'kits',
  a: 'alarms',
  f: 'log',
  m: 'manage',
  o: 'overview',
  p: 'map',
  d: 'assets',
  l: 'links',
  t: 'activity',
  s: 'settings',
};
/** The letter follows within this time. */
const second_ms = 1_500;

let begun_ms = Number.NEGATIVE_INFINITY;

export function pressKey(event: KeyboardEvent, kit_id: string | null, act: Actions) {
  if (settings.shortcuts === 'off' || isForSomethingElse(event)) return;
  const key = letterOf(event);
  const screen = event.timeStamp - begun_ms < second_ms ? places[key] : undefined;
  begun_ms = key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
  if (screen) location.hash = addressOf(screen, kit_id);
  if (key === '?') act.openSheet('shortcuts');
  const search = key === '/' ? document.querySelector('input[type="search"]') : null;
  if (!(search instanceof HTMLInputElement)) return;
  event.preventDefault();
  search.focus();
}

/** Text that is typed, a shortcut of the browser, or a key while a sheet asks something. */
function isForSomethingElse({ ctrlKey, altKey, metaKey, target }: KeyboardEvent) {
  const isTyping = target instanceof Element && target.matches('input, textarea, select');
  return ctrlKey || altKey || metaKey || isTyping || document.querySelector('dialog') !== null;
}

/** On a keyboard of another script, what is on the same key of a Latin one (silverbullet#1911). */
function letterOf({ key, code }: KeyboardEvent) {
  return /^[\x20-\x7e]$/u.test(key) ? key.toLowerCase() : code.replace(/^Key/u, '').toLowerCase();
}
