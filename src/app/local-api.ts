/** What the control socket asks, answered by the parts of the daemon. */
import type { LocalApi } from '../local/api.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { LogRoot } from '../platform/log.ts';
import { localTasks } from './local-tasks.ts';
import { logLevels } from './log-levels.ts';
import { statusReport, type ReportParts } from './report.ts';
import type { Tail } from './tail.ts';

export function localApi(parts: ReportParts, tail: Tail, log: LogRoot): LocalApi {
  const tasks = localTasks(parts.tasks, parts.clock);
  return {
    report: async () => statusReport(parts),
    tail: (listener) => tail.listen(listener),
    ...localBuffer(parts.outbox),
    ...logLevels(log, parts),
    recentLog: log.recent,
    dispatch: tasks.dispatch,
    tasks: tasks.recent,
    task: async (id) => parts.tasks.find(id),
  };
}

function localBuffer(
  outbox: Outbox,
): Pick<LocalApi, 'buffer' | 'quarantine' | 'retryQuarantined' | 'discardQuarantined'> {
  return {
    async buffer() {
      const { lanes, file_bytes, disk_free_bytes } = await outbox.inspect();
      const rows = Array.from(outbox.depth(), ([lane, depth]) => ({
        lane,
        ...depth,
        oldest: isoOrNull(lanes[lane].oldest_ms),
      }));
      return { lanes: rows, quarantined: outbox.ledger().quarantined, file_bytes, disk_free_bytes };
    },
    async quarantine() {
      const { quarantine } = await outbox.inspect();
      return Array.from(quarantine, ({ time_ms, ...row }) => ({
        ...row,
        time: new Date(time_ms).toISOString(),
      }));
    },
    retryQuarantined: async (ids) => outbox.retryQuarantined(ids),
    discardQuarantined: async (ids) => outbox.discardQuarantined(ids),
  };
}

function isoOrNull(time_ms: number | null): string | null {
  return time_ms === null ? null : new Date(time_ms).toISOString();
}
