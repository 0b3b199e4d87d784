/** Reports the status and the progress of a running daemon to systemd. */
import type { Vitals } from '../../kit/app/vitals.ts';
import type { Log } from '../../platform/log/log.ts';
import type { Notifier } from '../../platform/systemd/notify.ts';
import { every, sleep } from '../../platform/time.ts';
import { texts } from '../texts.ts';
import type { AppDeps } from '../../kit/app/app.ts';
import { LiveLine, progressText } from '../terminal/progress.ts';
import type { Output } from '../terminal/shell.ts';

const status_every_ms = 10_000;
/** Reading or repairing a large buffer takes minutes on a slow board; a start that hangs is ended after this time. */
const start_max_ms = 900_000;
const extend_every_ms = 10_000;
const extend_by_ms = 60_000;
/** Watchdog notifications within the time after which systemd restarts the service. */
const beats = 3;

interface Attended {
  readonly vitals: Vitals;
  readonly notifier: Notifier;
  readonly log: Log;
}

/** Extends the start timeout of systemd until `signal` aborts, for a quarter of an hour at most. */
export function extendStart(notifier: Pick<Notifier, 'extendStart'>, signal: AbortSignal): void {
  const began_ms = performance.now();
  const extend = (): void => {
    if (performance.now() - began_ms < start_max_ms) notifier.extendStart(extend_by_ms);
  };
  extend();
  every(extend_every_ms, signal, extend);
}

/** Reports to systemd until `signal` aborts. Returns what shows the status at once. */
export function attendSystemd({ vitals, notifier, log }: Attended, signal: AbortSignal): () => void {
  const show = (): void => notifier.status(vitals.summary());
  show();
  every(status_every_ms, signal, show);
  if (notifier.watchdog_ms !== null) {
    void feedWatchdog({ vitals, notifier, log }, notifier.watchdog_ms / beats, signal);
  }
  return show;
}

/** Notifies the watchdog only after every part has made progress. Logs the first failure, which explains the restart. */
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
      log.error({ reason: trouble }, texts.no_progress);
    }
    if (trouble === undefined && troubled_ms !== undefined) {
      log.info({ down_s: (performance.now() - troubled_ms) / 1_000 }, 'progress resumed');
    }
    troubled_ms = trouble === undefined ? undefined : (troubled_ms ?? began_ms);
    await sleep(Math.max(0, beat_ms - (performance.now() - began_ms)), signal);
  }
}

// Shows how far the reading of a damaged buffer file is: as a bar on a terminal, as log lines elsewhere, and to systemd.

const log_every_ms = 10_000;

interface SalvageParts {
  readonly out: Output;
  readonly log: Pick<Log, 'info'>;
  readonly notifier: Pick<Notifier, 'status'>;
  readonly now_ms: () => number;
}

/** Receives every report. The bar disappears with the last one; without a terminal the first and every tenth second are logged. */
export function salvageProgress({
  out,
  log,
  notifier,
  now_ms,
}: SalvageParts): NonNullable<AppDeps['onSalvage']> {
  const live = new LiveLine(out);
  let logged_ms = Number.NEGATIVE_INFINITY;
  return ({ rows_saved, rows_expected, done }) => {
    const counts = texts.salvaged(rows_saved, rows_expected);
    notifier.status(done ? texts.opening_buffer : `${texts.salvaging}: ${counts}`);
    if (out.isTTY === true) {
      const bar = progressText({
        what: texts.salvage,
        done: rows_saved,
        total: rows_expected ?? 0,
        facts: [counts],
      });
      live.show(done ? '' : bar);
      return;
    }
    if (done || now_ms() - logged_ms < log_every_ms) return;
    logged_ms = now_ms();
    log.info({ rows_saved, rows_expected }, texts.salvaging);
  };
}
