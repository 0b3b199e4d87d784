/** Settings of the person at this browser; kept in its storage where it has one. */
import { isRecord, parseJson } from './json.js';

/** @typedef {{ theme: string, units: string, zone: string, language: string, map: string }} Settings */

const storage_key = 'kit-console';

/** The values of each setting; the first is the default. */
export const choicesOf = {
  theme: ['auto', 'day', 'night', 'red'],
  units: ['metric', 'imperial', 'nautical'],
  zone: ['local', 'utc'],
  language: ['auto', 'en', 'de'],
  map: ['auto', 'simple'],
};

/** @type {Settings} */
export const settings = { theme: 'auto', units: 'metric', zone: 'local', language: 'auto', map: 'auto' };

/** @type {MediaQueryList | undefined} */
let deviceDark;

/** Reads what was stored; unknown values stay at their default. */
export function readSettings() {
  const stored = parseJson(read());
  if (!isRecord(stored)) return;
  for (const name of namesOf()) {
    const value = stored[name];
    if (typeof value === 'string' && choicesOf[name].includes(value)) settings[name] = value;
  }
}

/**
 * @param {keyof Settings} name
 * @param {string} value
 */
export function changeSetting(name, value) {
  settings[name] = value;
  try {
    localStorage.setItem(storage_key, JSON.stringify(settings));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** @returns {readonly (keyof Settings)[]} */
function namesOf() {
  return ['theme', 'units', 'zone', 'language', 'map'];
}

/** @returns {string} */
function read() {
  try {
    return localStorage.getItem(storage_key) ?? '';
  } catch {
    return '';
  }
}

/**
 * Returns the theme to show: the chosen one, else that of the device.
 * @returns {string}
 */
export function themeNow() {
  if (settings.theme !== 'auto') return settings.theme;
  deviceDark ??= matchMedia('(prefers-color-scheme: dark)');
  return deviceDark.matches ? 'night' : 'day';
}

/** @returns {string} the language to show */
export function languageNow() {
  if (settings.language !== 'auto') return settings.language;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}
