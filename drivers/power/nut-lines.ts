/** The lines of upsd, as text and as facts (NUT network protocol, docs/net-protocol.txt). */
import { clampPercent, numberOf, type Reading, unknown_reading } from './reading.ts';

/** Words of a line. A quoted word may hold spaces; within quotes a backslash makes the next sign plain. */
export function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/gu)].map(
    ([, quoted, bare]) => bare ?? (quoted ?? '').replaceAll(/\\(.)/gu, '$1'),
  );
}

/** Variables of a UPS by name: `ups.status`, `battery.charge`. */
export type Variables = ReadonlyMap<string, string>;

/** What the variables say. What a UPS does not tell is null; nothing is guessed from the voltage. */
export function readingOf(variables: Variables): Reading {
  const state = variables.get('ups.status')?.trim() ?? null;
  const tokens = state?.split(/\s+/u) ?? [];
  if (tokens.includes('WAIT')) {
    return { ...unknown_reading, reason: 'the driver of the UPS is still starting' };
  }
  const charge = numberOf(variables.get('battery.charge'));
  const runtime_s = numberOf(variables.get('battery.runtime'));
  const percent = charge === null ? null : clampPercent(charge);
  return {
    percent,
    charging: chargingOf(tokens, variables.get('battery.charger.status'), percent),
    voltage_v: numberOf(variables.get('battery.voltage')),
    runtime_s: runtime_s !== null && runtime_s >= 0 ? runtime_s : null,
    says_low: tokens.includes('LB'),
    state,
    reason: percent === null ? 'the UPS does not tell its charge' : null,
    alarm: alarmOf(tokens, variables.get('ups.alarm')?.trim() ?? ''),
  };
}

function alarmOf(tokens: readonly string[], text: string): string | null {
  if (text !== '') return text;
  return tokens.includes('ALARM') ? 'the UPS does not say which' : null;
}

/** On the mains without CHRG it is not charging if it is full; if not, many drivers just do not tell. */
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
