/** Decides from single probes whether a link is reachable, with hysteresis. Pure. */

export interface Hysteresis {
  /** Lost probes in a row, over all targets, until the link counts as unreachable. */
  readonly down_after: number;
  /** Answers in a row until it counts as reachable again. */
  readonly up_after: number;
}

export interface Verdict {
  readonly reachable: boolean | null;
  /** Probes lost since the newest answer. */
  readonly misses: number;
  /** Answers since the newest lost probe. */
  readonly hits: number;
  /** Sequence number of the newest probe that was answered; -1: none. */
  readonly answered: number;
}

export const undecided: Verdict = { reachable: null, misses: 0, hits: 0, answered: -1 };

/**
 * The verdict after one more probe. A loss becomes known a timeout after its probe was sent, so newer probes may have
 * been answered by then: such a loss counts for the loss figure, but is no evidence about the link as it is now.
 */
export function judge(
  verdict: Verdict,
  probe: { readonly sequence: number; readonly answered: boolean },
  { down_after, up_after }: Hysteresis,
): Verdict {
  if (probe.answered) {
    const hits = verdict.hits + 1;
    const reachable = hits >= up_after ? true : verdict.reachable;
    return { reachable, misses: 0, hits, answered: Math.max(verdict.answered, probe.sequence) };
  }
  if (probe.sequence < verdict.answered) return verdict;
  const misses = verdict.misses + 1;
  const reachable = misses >= down_after ? false : verdict.reachable;
  return { ...verdict, reachable, misses, hits: 0 };
}

/** The next probes may change the verdict: they should come soon. */
export function inDoubt({ reachable, misses, hits }: Verdict): boolean {
  if (reachable === null) return true;
  return reachable ? misses > 0 : hits > 0;
}
