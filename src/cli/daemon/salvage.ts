/** Shows how far the reading of a damaged buffer file is: as a bar on a terminal, as log lines elsewhere, and to systemd. */
import type { AppDeps } from '../../app/app.ts';
import type { Log } from '../../platform/log/log.ts';
import type { Notifier } from '../../platform/systemd/notify.ts';
import { LiveLine } from '../terminal/live-line.ts';
import { progressText } from '../terminal/progress.ts';
import type { Output } from '../terminal/shell.ts';
import { texts } from '../texts.ts';

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
