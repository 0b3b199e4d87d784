/** Checks that the daemon makes progress, for systemd. */
import { within } from '../platform/time.ts';
import { statusLine } from './status-line.ts';
import type { ReportParts } from './status-report.ts';

/** The hub goes through its drivers every second; more than this means that it does not. */
const hub_silent_ms = 5_000;
/** Average lag of the event loop above which the daemon counts as stuck. */
const lag_mean_max_ms = 2_000;
/**
 * A disk that does not answer is worked around: messages leave from memory, and a restart would lose those and meet the same
 * disk. After this time the thread itself is under suspicion.
 */
const disk_silent_max_ms = 600_000;
/** No task has this id; to look for it costs one look into an index. */
const no_task = 'vital-sign';

export interface Vitals {
  /**
   * Resolves with undefined once every part has shown progress, or with a sentence on the part that has not within
   * `ms`. The broker does not matter: a kit without a link is well.
   */
  readonly check: (ms: number) => Promise<string | undefined>;
  /** What is wrong, then `connected to broker.example.com, 4 assets online, 0 messages waiting`. */
  readonly summary: () => string;
}

export function vitals(parts: ReportParts): Vitals {
  return {
    async check(ms) {
      const answered = await within(ms, bufferAnswers(parts));
      if (!answered && !isWorkedAround(parts))
        return `the thread of the buffer has not answered within ${Math.round(ms / 1_000)} s`;
      const silent_ms = performance.now() - parts.hub.ticked_ms();
      if (silent_ms > Math.max(hub_silent_ms, ms))
        return `the drivers have not been looked after for ${Math.round(silent_ms / 1_000)} s`;
      const { mean_ms } = parts.lag.figures();
      return mean_ms > lag_mean_max_ms
        ? `the event loop is ${Math.round(mean_ms)} ms late on average`
        : undefined;
    },
    summary: () => statusLine(parts),
  };
}

function isWorkedAround({ outbox }: ReportParts): boolean {
  return outbox.health().state === 'failing' && outbox.unanswered_ms() < disk_silent_max_ms;
}

/** A disk that refuses is a normal state, and its refusal an answer; a commit that never ends is neither. */
async function bufferAnswers({ outbox }: ReportParts): Promise<true> {
  const isRefused = outbox.health().state === 'failing';
  await Promise.allSettled([outbox.find(no_task), isRefused ? undefined : outbox.committed()]);
  return true;
}
