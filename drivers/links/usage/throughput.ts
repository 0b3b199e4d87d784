/** Throughput from byte counters over monotonic time, without the leaps that counters make. Pure. */

export interface Counters {
  readonly ifindex: number;
  readonly rx_bytes: number;
  readonly tx_bytes: number;
  /** Monotonic milliseconds. */
  readonly mono_ms: number;
}

export interface Rates {
  readonly rx_bps: number | null;
  readonly tx_bps: number | null;
}

export const no_rates: Rates = { rx_bps: null, tx_bps: null };

/** For interfaces that do not report their speed: above any WAN of a kit. */
export const speed_default_bps = 10e9;
/** Counters and clock are not read at the same instant. */
const tolerance = 1.1;

/** The most bytes that can have passed, one way. */
export function bytesPossible(speed_bps: number | undefined, pause_ms: number): number {
  return ((speed_bps ?? speed_default_bps) / 8) * (Math.max(0, pause_ms) / 1_000) * tolerance;
}

/**
 * Mean bits per second between two readings. Null when the interface is another one, when a counter was reset, or when
 * it exceeds what the link can carry.
 */
export function ratesBetween(
  before: Counters | undefined,
  now: Counters,
  speed_bps: number | undefined,
): Rates {
  if (before?.ifindex !== now.ifindex || now.mono_ms <= before.mono_ms) return no_rates;
  const pause_ms = now.mono_ms - before.mono_ms;
  const most = bytesPossible(speed_bps, pause_ms);
  const rate = (from: number, to: number): number | null =>
    to < from || to - from > most ? null : Math.round(((to - from) * 8_000) / pause_ms);
  return { rx_bps: rate(before.rx_bytes, now.rx_bytes), tx_bps: rate(before.tx_bytes, now.tx_bytes) };
}

/** The larger of a peak and a rate; null when neither is known. */
export function peakOf(peak: number | null, rate: number | null): number | null {
  return peak === null || rate === null ? (peak ?? rate) : Math.max(peak, rate);
}
