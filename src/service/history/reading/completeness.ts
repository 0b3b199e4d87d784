/** What is missing of a kit's messages, and why: numbers that were never received, beside what the kit reported as dropped. */
import type { HistoryStore } from '../history-store.ts';
import { type Hole, holes_max } from '../holes.ts';
import type { Store } from '../../store/store.ts';

/** Missing stretches of one epoch that are named. */
const stretches_max = 1_000;

export interface Missing {
  readonly lo: number;
  readonly hi: number;
  readonly messages: number;
  /** Why, as the kit reported it: reports whose numbers overlap. Empty: not explained yet. */
  readonly reasons: readonly string[];
}

export interface EpochCompleteness {
  readonly epoch: number;
  readonly received: number;
  readonly missing: readonly Missing[];
  /** Missing stretches beyond the first 1,000. */
  readonly more: number;
  /** What the kit reported as dropped of this epoch. */
  readonly dropped: readonly Pick<Hole, 'lo' | 'hi' | 'lane' | 'reason' | 'messages' | 'reported_ms'>[];
}

/** Newest epoch first. Numbers below the first received one are not counted: an older service may have them. */
export async function readCompleteness(
  store: HistoryStore & Pick<Store, 'acks'>,
  kit_id: string,
): Promise<{ readonly epochs: readonly EpochCompleteness[]; readonly hasMoreDrops: boolean }> {
  const reported = await store.historyHoles(kit_id);
  const holes = Map.groupBy(reported.slice(0, holes_max), ({ epoch }) => epoch);
  const epochs = (await store.acks(kit_id)).map(({ epoch, ranges }) => {
    const dropped = holes.get(epoch) ?? [];
    const missing = ranges.slice(1).map(([first], index): Missing => {
      const [lo, hi] = [(ranges[index]?.[1] ?? first) + 1, first - 1];
      const reasons = dropped.filter((hole) => hole.lo <= hi && hole.hi >= lo).map(({ reason }) => reason);
      return { lo, hi, messages: hi - lo + 1, reasons: [...new Set(reasons)] };
    });
    return {
      epoch,
      received: ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0),
      missing: missing.slice(0, stretches_max),
      more: Math.max(0, missing.length - stretches_max),
      dropped: dropped.map(({ lo, hi, lane, reason, messages, reported_ms }) => ({
        lo,
        hi,
        lane,
        reason,
        messages,
        reported_ms,
      })),
    };
  });
  return { epochs, hasMoreDrops: reported.length > holes_max };
}
