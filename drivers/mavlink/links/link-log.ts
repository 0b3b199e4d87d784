/** Logs when a link opens, when it is lost, and how long each state lasted: one line for each change, not for each attempt. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { texts } from './texts.ts';

/** Returns the function to call with each state report of the named link. */
export function linkLog(
  log: Pick<DriverLog, 'debug' | 'info' | 'warn'>,
  link: string,
): (up: boolean, reason: string | null | undefined) => void {
  let opened = false;
  let last: { readonly up: boolean; readonly since_ms: number } | undefined;
  return (up, reason) => {
    const before = last;
    if (before?.up === up) {
      if (!up) log.debug({ link, reason }, texts.still_down);
      return;
    }
    last = { up, since_ms: performance.now() };
    const wasOpen = opened;
    opened ||= up;
    const held_s = before && (last.since_ms - before.since_ms) / 1_000;
    if (up) log.info({ link, ...(before && { down_s: held_s }) }, wasOpen ? texts.reopened : texts.opened);
    else
      log.warn({ link, reason, ...(before && { up_s: held_s }) }, wasOpen ? texts.lost : texts.open_failed);
  };
}
