/** What systemd is told of a running daemon: how it is, and that it makes progress. */
import type { Vitals } from '../app/vitals.ts';
import type { Log } from '../platform/log.ts';
import type { Notifier } from '../platform/notify.ts';
import { every, sleep } from '../platform/time.ts';

const status_every_ms = 10_000;
/** systemd hears of progress so often within the time after which it would restart the service. */
const beats = 3;

export interface Attended {
  readonly vitals: Vitals;
  readonly notifier: Notifier;
  readonly log: Log;
}

/** Keeps systemd informed until `signal` aborts. */
export function attendSystemd({ vitals, notifier, log }: Attended, signal: AbortSignal): void {
  const show = (): void => notifier.status(vitals.summary());
  show();
  every(status_every_ms, signal, show);
  if (notifier.watchdog_ms === null) return;
  void feedWatchdog({ vitals, notifier, log }, notifier.watchdog_ms / beats, signal);
}

/** A beat only after every part has shown progress. One that fails is said once, so that the restart can be explained. */
async function feedWatchdog(
  { vitals, notifier, log }: Attended,
  beat_ms: number,
  signal: AbortSignal,
): Promise<void> {
  let troubled_ms: number | undefined;
  while (!signal.aborted) {
    const began_ms = performance.now();
    const trouble = await vitals.check(beat_ms);
    if (signal.aborted) return;
    if (trouble === undefined) notifier.alive();
    if (trouble !== undefined && troubled_ms === undefined) {
      log.error({ reason: trouble }, 'no progress: systemd will restart kit-connector if this goes on');
    }
    if (trouble === undefined && troubled_ms !== undefined) {
      log.info({ down_s: (performance.now() - troubled_ms) / 1_000 }, 'there is progress again');
    }
    troubled_ms = trouble === undefined ? undefined : (troubled_ms ?? began_ms);
    await sleep(Math.max(0, beat_ms - (performance.now() - began_ms)), signal);
  }
}
