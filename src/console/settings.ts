/** Settings of the person at this browser; kept in its storage where it has one. */
import { isRecord, parseJson } from './json.ts';

const storage_key = 'kit-console';

/** The values of each setting; the first is the default. */
export const choicesOf = {
  theme: ['auto', 'day', 'night', 'red'],
  units: ['metric', 'imperial', 'nautical'],
  zone: ['local', 'utc'],
  language: ['auto', 'en', 'de'],
  map: ['auto', 'simple'],
  sound: ['on', 'off'],
  shortcuts: ['on', 'off'],
};

export type Settings = Record<keyof typeof choicesOf, string>;

export const settings: Settings = {
  theme: 'auto',
  units: 'metric',
  zone: 'local',
  language: 'auto',
  map: 'auto',
  sound: 'on',
  shortcuts: 'on',
};

/** In the order in which they are shown. */
export const setting_names = namesOf(choicesOf);

function namesOf<T extends object>(table: T): readonly (keyof T)[];
function namesOf(table: object) {
  return Object.keys(table);
}

let deviceDark: MediaQueryList | undefined;

/** Reads what was stored; unknown values stay at their default. */
export function readSettings() {
  const stored = parseJson(read());
  if (!isRecord(stored)) return;
  for (const name of setting_names) {
    const value = stored[name];
    if (typeof value === 'string' && choicesOf[name].includes(value)) settings[name] = value;
  }
}

export function changeSetting(name: keyof Settings, value: string) {
  settings[name] = value;
  try {
    localStorage.setItem(storage_key, JSON.stringify(settings));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function read(): string {
  try {
    return localStorage.getItem(storage_key) ?? '';
  } catch {
    return '';
  }
}

/** Returns the theme to show: the chosen one, else that of the device. */
export function themeNow(): string {
  if (settings.theme !== 'auto') return settings.theme;
  deviceDark ??= matchMedia('(prefers-color-scheme: dark)');
  return deviceDark.matches ? 'night' : 'day';
}

/** @returns the language to show */
export function languageNow(): string {
  if (settings.language !== 'auto') return settings.language;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}
