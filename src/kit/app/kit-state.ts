/** Data of the birth and the will of the kit. */
import { cut, degraded_max, name_chars_max, sentence_chars_max } from '../../contract/limits.ts';
import { contract_version } from '../../contract/topics.ts';
import type { KitState } from '../../contract/presence.ts';
import { degraded, type ReportParts, startTime } from './status-report.ts';

export function kitState(parts: ReportParts, how: Pick<KitState, 'online' | 'reason'>): KitState {
  const { outbox, clock, config } = parts;
  const depth = [...outbox.depth().values()];
  return {
    ...how,
    name: config.kit_name === undefined ? null : cut(config.kit_name, name_chars_max),
    partners: config.service !== undefined,
    epoch: outbox.epoch,
    boot: clock.boot_id,
    started_at: new Date(startTime(parts)).toISOString(),
    software: `kit-connector ${parts.version}`,
    contract: contract_version,
    outbox: {
      rows: depth.reduce((sum, { rows }) => sum + rows, 0),
      bytes: depth.reduce((sum, { bytes }) => sum + bytes, 0),
      oldest: outbox.oldest_ms === null ? null : new Date(outbox.oldest_ms).toISOString(),
    },
    degraded: degraded(parts)
      .slice(0, degraded_max)
      .map((sentence) => cut(sentence, sentence_chars_max)),
  };
}
