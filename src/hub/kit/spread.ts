/** A limit of rate in one number: the moment until which what was sent so far is spread, one each `every_ms` (GCRA, ITU-T I.371). */

export interface SpreadRate {
  /** So many may be sent at once. */
  readonly at_once: number;
  /** In the long run one each time. */
  readonly every_ms: number;
}

/** Whether one more may be sent. Both moments are monotonic. */
export function hasRoom(spread_until_ms: number, now_ms: number, { at_once, every_ms }: SpreadRate): boolean {
  return spread_until_ms - now_ms <= (at_once - 1) * every_ms;
}

/** The moment once one more was sent. */
export function spreadUntil(spread_until_ms: number, now_ms: number, { every_ms }: SpreadRate): number {
  return Math.max(spread_until_ms, now_ms) + every_ms;
}
