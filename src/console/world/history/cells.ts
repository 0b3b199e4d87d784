/** The cells of an availability strip: how much of each the link answered. */
import type { Interval } from './events.ts';
import type { Sample } from '../../types.d.ts';

export const cells = 96;
/** A value counts for so long after it was observed: kits repeat what does not change every 300 s. */
const holds_ms = 330_000;

type Cell = 'all' | 'part' | 'none' | 'unknown';

/** @param samples share of the time with an answer, 0 to 1; null: not observed */
export function cellsOf(samples: readonly Sample[], from_ms: number, to_ms: number): readonly Cell[] {
  const wide_ms = (to_ms - from_ms) / cells;
  return Array.from({ length: cells }, (_, i) => {
    const start_ms = from_ms + i * wide_ms;
    const end_ms = start_ms + wide_ms;
    const inside = samples.filter(({ time_ms }) => time_ms >= start_ms && time_ms < end_ms);
    const before = samples.findLast(({ time_ms }) => time_ms < start_ms && start_ms - time_ms <= holds_ms);
    const seen = (inside.length > 0 ? inside : before ? [before] : []).flatMap(({ value }) => value ?? []);
    if (seen.length === 0) return 'unknown';
    if (seen.every((share) => share === 1)) return 'all';
    return seen.every((share) => share === 0) ? 'none' : 'part';
  });
}

/**
 * Samples for the strip from interruptions: the share of each cell in which the link answered; cells in which it was not observed
 * have none.
 */
export function observedIn({
  observed,
  gap_ms,
  gaps,
  from_ms,
  to_ms,
}: {
  readonly observed: readonly number[];
  readonly gap_ms: number;
  readonly gaps: readonly Interval[];
  readonly from_ms: number;
  readonly to_ms: number;
}): readonly Sample[] {
  const wide_ms = (to_ms - from_ms) / cells;
  return Array.from({ length: cells }, (_, i) => from_ms + (i + 0.5) * wide_ms).map((middle_ms) => {
    const start_ms = middle_ms - wide_ms / 2;
    const end_ms = middle_ms + wide_ms / 2;
    const down_ms = gaps.reduce(
      (sum, { since_ms, until_ms }) =>
        sum + Math.max(0, Math.min(end_ms, until_ms ?? to_ms) - Math.max(start_ms, since_ms)),
      0,
    );
    const isObserved =
      down_ms > 0 || observed.some((time_ms) => time_ms > start_ms - gap_ms && time_ms < end_ms);
    return {
      time_ms: middle_ms,
      value: isObserved ? Math.round(1_000 * Math.max(0, 1 - down_ms / wide_ms)) / 1_000 : null,
    };
  });
}
