/** Parses the lines of upsd and reads a battery from its variables (NUT network protocol, docs/net-protocol.txt). */
import { clampPercent, numberOf, type Reading, unknown_reading } from './reading.ts';
import { texts } from './texts.ts';

/** `VAR`, the UPS, the name and the value; 131,000 words in one line took 0.2 s. */
const words_max = 4;

/** The first words of a line. A quoted word may hold spaces; within quotes a backslash escapes the next character. */
export function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/gu)) {
    words.push(bare ?? (quoted ?? '').replaceAll(/\\(.)/gu, '$1'));
    if (words.length === words_max) break;
  }
  return words;
}

/** Limit of a status or an alarm. */
const text_chars_max = 500;

/** Variables of a UPS by name: `ups.status`, `battery.charge`. */
export type Variables = ReadonlyMap<string, string>;

/** Reads the variables. A value that the UPS does not report is null; nothing is estimated from the voltage. */
export function readingOf(variables: Variables): Reading {
  const state = variables.get('ups.status')?.trim().slice(0, text_chars_max) ?? null;
  const tokens = state?.split(/\s+/u) ?? [];
  if (tokens.includes('WAIT')) {
    return { ...unknown_reading, reason: texts.ups_starting };
  }
  const charge = numberOf(variables.get('battery.charge'));
  const runtime_s = numberOf(variables.get('battery.runtime'));
  const percent = charge === null ? null : clampPercent(charge);
  return {
    percent,
    charging: chargingOf(tokens, variables.get('battery.charger.status'), percent),
    voltage_v: numberOf(variables.get('battery.voltage')),
    runtime_s: runtime_s !== null && runtime_s >= 0 ? runtime_s : null,
    reports_low: tokens.includes('LB'),
    state,
    reason: percent === null ? texts.charge_unknown : null,
    alarm: alarmOf(tokens, variables.get('ups.alarm')?.trim() ?? ''),
  };
}

function alarmOf(tokens: readonly string[], text: string): string | null {
  const shutdown = tokens.includes('FSD') ? [texts.forced_shutdown] : [];
  const all = [...shutdown, ...(text === '' ? [] : [text])].join('; ');
  if (all !== '') return all.slice(0, text_chars_max);
  return tokens.includes('ALARM') ? texts.alarm_unnamed : null;
}

/** On the mains without CHRG a full battery is not charging; below that it is unknown, since many drivers do not report it. */
function chargingOf(
  tokens: readonly string[],
  charger: string | undefined,
  percent: number | null,
): boolean | null {
  if (charger !== undefined) return charger.trim() === 'charging';
  if (tokens.includes('DISCHRG') || tokens.includes('OB')) return false;
  if (tokens.includes('CHRG')) return true;
  return tokens.includes('OL') && percent === 100 ? false : null;
}
