/**
 * Decides who may have one of the kit's asset slots. A driver on an open network announces what anybody sends, so assets
 * that were seen only briefly, the strangers, never use up the slots of the others.
 */

/** Assets of one kit. Together with 256 of partners they are what the service takes. */
export const asset_limits = {
  all: 768,
  /** Of all drivers together: the rest is for assets that are configured, or were seen for `known_after_ms`. */
  strangers: 640,
  strangers_per_driver: 512,
} as const;

/** An asset that was seen for so long is known from then on, also over a restart. */
export const known_after_ms = 600_000;
/** A stranger that was not seen for so long is forgotten. */
export const stranger_kept_ms = 86_400_000;

export interface SlotHolder {
  /** Driver instance. */
  readonly driver: string;
  readonly isKnown: boolean;
  readonly online: boolean;
  readonly last_seen_ms: number;
}

/** A slot, and which holder makes room for it; or why there is none. */
export type Slot<H> = { readonly evicted: H | undefined } | { readonly refusal: string };

/** Among equals the offline stranger that was lost first makes room; nothing that is online or known ever does. */
export function slotFor<H extends SlotHolder>(
  holders: readonly H[],
  newcomer: Pick<SlotHolder, 'driver' | 'isKnown'>,
): Slot<H> {
  const strangers = holders.filter(({ isKnown }) => !isKnown);
  const own = strangers.filter(({ driver }) => driver === newcomer.driver);
  if (!newcomer.isKnown && own.length >= asset_limits.strangers_per_driver) {
    return evictedFrom(own, `driver ${newcomer.driver} has ${own.length} assets that are new to the kit`);
  }
  const isFull = holders.length >= asset_limits.all;
  if (isFull || (!newcomer.isKnown && strangers.length >= asset_limits.strangers)) {
    return evictedFrom(
      strangers,
      `the kit has ${holders.length} assets, ${strangers.length} of them new to it`,
    );
  }
  return { evicted: undefined };
}

function evictedFrom<H extends SlotHolder>(candidates: readonly H[], why: string): Slot<H> {
  const [first, ...others] = candidates.filter(({ online }) => !online);
  if (!first) return { refusal: `${why}, which is the limit` };
  return {
    evicted: others.reduce(
      (oldest, each) => (each.last_seen_ms < oldest.last_seen_ms ? each : oldest),
      first,
    ),
  };
}
