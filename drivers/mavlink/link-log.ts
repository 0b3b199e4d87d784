/** Tells the log when a link opens, when it is lost, and for how long it was so: once each way, however often it is tried. */
import type { DriverLog } from '../../src/driver/driver.ts';

/** The function to call with each report on the link of this name. */
export function linkLog(
  log: Pick<DriverLog, 'debug' | 'info' | 'warn'>,
  link: string,
): (up: boolean, reason: string | null | undefined) => void {
  let opened = false;
  let last: { readonly up: boolean; readonly since_ms: number } | undefined;
  return (up, reason) => {
    const before = last;
    if (before?.up === up) {
      if (!up) log.debug({ link, reason }, 'link is still away');
      return;
    }
    last = { up, since_ms: performance.now() };
    const wasOpen = opened;
    opened ||= up;
    const held_s = before && (last.since_ms - before.since_ms) / 1_000;
    if (up)
      log.info({ link, ...(before && { down_s: held_s }) }, wasOpen ? 'link is open again' : 'link is open');
    else
      log.warn(
        { link, reason, ...(before && { up_s: held_s }) },
        wasOpen ? 'link is lost' : 'link cannot be opened',
      );
  };
}
