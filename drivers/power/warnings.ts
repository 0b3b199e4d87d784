/** Logs a low battery, a UPS alarm, and a UPS that reports nothing, once when each begins and once when it ends. */
import type { DriverLog } from '../../src/driver/driver.ts';
import type { Reading } from './reading.ts';
import { texts } from './texts.ts';

/** Keeps a battery at the limit from logging again and again. */
const hysteresis_pct = 5;

/** Returns a function to call with each reading. */
export function createWarnings(
  log: DriverLog,
  { low_pct, nut }: { readonly low_pct: number; readonly nut?: unknown },
): (reading: Reading) => void {
  let low = false;
  let alarm: string | null = null;
  let isKnown = true;
  return (reading) => {
    const now = isLow(reading, low, low_pct);
    const facts = { battery_pct: reading.percent, runtime_s: reading.runtime_s };
    if (now && !low) log.warn(facts, texts.battery_low);
    if (!now && low) log.info(facts, texts.battery_recovered);
    low = now;
    if (nut) isKnown = logData(log, reading, isKnown);
    // Without data it is unknown whether the alarm has ended.
    if (reading.state === null || reading.alarm === alarm) return;
    if (reading.alarm !== null) log.warn({ alarm: reading.alarm }, texts.ups_alarm);
    else log.info({ alarm }, texts.ups_alarm_cleared);
    alarm = reading.alarm;
  };
}

/** Returns whether the UPS reports anything. */
function logData(log: DriverLog, { state, reason }: Reading, before: boolean): boolean {
  const isKnown = state !== null || reason === null;
  if (before && !isKnown) log.warn({ reason }, texts.ups_data_lost);
  if (!before && isKnown) log.info({ state }, texts.ups_data_back);
  return isKnown;
}

/** An unknown charge keeps the state before. */
function isLow({ percent, charging, reports_low }: Reading, before: boolean, low_pct: number): boolean {
  if (reports_low) return true;
  if (charging === true) return false;
  if (percent === null) return before;
  return percent <= (before ? low_pct + hysteresis_pct : low_pct);
}
