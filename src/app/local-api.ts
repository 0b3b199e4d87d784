/** What the control socket asks, answered by the parts of the daemon. */
import { CommandRefused } from '../errors.ts';
import type { LocalApi } from '../local/api.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { LogRoot } from '../platform/log/log.ts';
import { localTasks } from './local-tasks.ts';
import { logLevels } from './log-settings.ts';
import { statusReport, type ReportParts } from './status-report.ts';
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
    forgetAsset(asset_id, { name: user, uid }) {
      const asset = parts.hub.assetNamed(asset_id);
      const refusal = parts.hub.forgetAsset(asset_id);
      if (!asset || refusal !== undefined) throw new CommandRefused(refusal ?? `no asset ${asset_id}`);
      const { id, key, name } = asset;
      log.info({ asset_key: key, name, user, uid }, 'asset forgotten');
      return { id, key, name };
    },
  };
}

function localBuffer(
  outbox: Outbox,
): Pick<LocalApi, 'buffer' | 'quarantine' | 'quarantined' | 'retryQuarantined' | 'discardQuarantined'> {
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
      const rows = await outbox.quarantine.list();
      return Array.from(rows, ({ time_ms, ...row }) => ({ ...row, time: new Date(time_ms).toISOString() }));
    },
    async quarantined(id) {
      const found = await outbox.quarantine.find(id);
      if (!found) return undefined;
      const { time_ms, ...message } = found;
      return { ...message, time: new Date(time_ms).toISOString() };
    },
    retryQuarantined: async (ids) => outbox.quarantine.retry(ids),
    discardQuarantined: async (ids) => outbox.quarantine.discard(ids),
  };
}

function isoOrNull(time_ms: number | null): string | null {
  return time_ms === null ? null : new Date(time_ms).toISOString();
}
