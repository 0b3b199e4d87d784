/** Logs addresses that a device reported and that are not used. */
import type { DriverLog } from './driver.ts';
import { texts } from './texts.ts';

/** Called with a refused address and why. */
export type OnRefused = (address: string, reason: string) => void;

/** Addresses of one device that are logged: a stranger may report endlessly many. */
const refusals_max = 8;
const address_chars_max = 200;

/** Logs each refused address of one device once, with facts that name the device. */
export function logRefused(
  log: Pick<DriverLog, 'warn'>,
  device: Readonly<Record<string, string>>,
): OnRefused {
  const known = new Set<string>();
  return (address, reason) => {
    const shown = address.slice(0, address_chars_max);
    if (known.has(shown) || known.size >= refusals_max) return;
    known.add(shown);
    log.warn({ ...device, address: shown, reason }, texts.address_refused);
  };
}
