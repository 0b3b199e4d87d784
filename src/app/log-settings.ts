/** Log levels at run time, as the control socket asks for them. */
import type { LocalApi, LogLevelChange, LogLevels } from '../local/api.ts';
import { CommandRefused } from '../errors.ts';
import { durationInWords } from '../platform/log/entry.ts';
import type { LogRoot } from '../platform/log/log.ts';
import type { ReportParts } from './status-report.ts';
import { texts } from './texts.ts';

/** Parts of the program that name themselves in their lines. */
const parts_of_program = ['hub', 'media', 'outbox', 'service', 'tasks', 'uplink'] as const;

/** Refuses an unknown name before anything is changed. */
export function logLevels(
  log: LogRoot,
  { hub }: ReportParts,
): Pick<LocalApi, 'logLevels' | 'changeLogLevels'> {
  const report = (): LogLevels => ({
    levels: log.levels().map(({ name, level, until_ms }) => ({
      name,
      level,
      until: until_ms === null ? null : new Date(until_ms).toISOString(),
    })),
  });
  /** Records the change, so that a later reader sees why the log has more lines for a time. */
  const logChange = (name: string | null, level: LogLevelChange['level'], for_s: number): void => {
    const owner = log.ownerOf(name);
    if (level === null) owner.info({}, texts.level_configured);
    else owner.info({}, texts.level_set(level, durationInWords(for_s)));
  };
  return {
    logLevels: report,
    changeLogLevels({ changes, for_s }) {
      const known = [...hub.drivers().map(({ name }) => name), ...parts_of_program];
      refuseUnknown(changes, known);
      for (const { name, level } of changes) {
        if (level === null) log.reset(name);
        else log.override(name, level, for_s * 1_000);
        logChange(name, level, for_s);
      }
      return report();
    },
  };
}

function refuseUnknown(changes: readonly LogLevelChange[], known: readonly string[]): void {
  const unknown = changes.find(({ name }) => name !== null && !known.includes(name));
  if (!unknown) return;
  throw new CommandRefused(
    `nothing here is called "${unknown.name}"; drivers and parts are ${known.toSorted().join(', ')}`,
  );
}
