/** Says once each way that the battery is low and that the UPS has an alarm. */
import type { DriverLog } from '../../src/driver/driver.ts';
import type { Reading } from './reading.ts';

/** A battery that hovers about the limit warns once. */
const hysteresis_pct = 5;

/** Returns the function that is told each reading. */
export function createWarnings(
  log: DriverLog,
  { low_pct }: { readonly low_pct: number },
): (reading: Reading) => void {
  let low = false;
  let alarm: string | null = null;
  return (reading) => {
    const now = isLow(reading, low, low_pct);
    const facts = { battery_pct: reading.percent, runtime_s: reading.runtime_s };
    if (now && !low) log.warn(facts, 'the battery is low; charge it or switch off what is not needed');
    if (!now && low) log.info(facts, 'the battery is no longer low');
    low = now;
    // Without data nobody knows whether the alarm is over.
    if (reading.state === null || reading.alarm === alarm) return;
    if (reading.alarm !== null) log.warn({ alarm: reading.alarm }, 'the UPS has an alarm');
    else log.info({ alarm }, 'the alarm of the UPS is over');
    alarm = reading.alarm;
  };
}

/** What is unknown changes nothing. */
function isLow({ percent, charging, says_low }: Reading, before: boolean, low_pct: number): boolean {
  if (says_low) return true;
  if (charging === true) return false;
  if (percent === null) return before;
  return percent <= (before ? low_pct + hysteresis_pct : low_pct);
}
