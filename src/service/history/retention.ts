/** How long the history keeps what. */
import { day_ms, type HistoryClass } from './message.ts';

export interface Retention {
  /** Days that the messages of each class are kept, from the day of observation. */
  readonly days: Readonly<Record<HistoryClass, number>>;
  /** Days that the figures for ten minutes are kept. */
  readonly figures_days: number;
  /** Bytes of all segments of one kit; beyond it the oldest feeds go, then positions, then the rest. Left out: no limit. */
  readonly kit_bytes_max?: number | undefined;
}

/** A message from the future, or older than what is kept, is stored with the day of its arrival. */
export const future_ms = day_ms;
export const past_ms = 400 * day_ms;

/** What a gateway keeps: everything for the same time, within a size. */
export function gatewayRetention({
  days,
  max_mb,
}: {
  readonly days: number;
  readonly max_mb: number;
}): Retention {
  const all = { event: days, position: days, feed: days, kit: days };
  return { days: all, figures_days: days, kit_bytes_max: max_mb * 1_000_000 };
}
