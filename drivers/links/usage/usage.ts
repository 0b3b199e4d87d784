/** Counts the bytes of a link by day, from counters that reset, wrap and vanish, under a clock that may not be set. Pure. */
import { z } from 'zod';
import type { Usage } from '../../../src/contract/kit.ts';
import { monthEnd, monthStart } from './calendar.ts';

const bytes = z.number().nonnegative();
const both = z.tuple([bytes, bytes]);
type Both = z.output<typeof both>;

export const usageLedger = z.object({
  /** The counters when they were last read, and what they belong to. */
  last: z
    .object({ boot_id: z.string(), ifindex: z.number(), rx: bytes, tx: bytes, uptime_ms: z.number() })
    .nullable(),
  /** Received and sent bytes by day. */
  days: z.record(z.string().regex(/^\d{4}-\d{2}-\d{2}$/u), both),
  /** Counted while the clock was not set; belongs to the day on which it is. */
  pending: both,
});
export type UsageLedger = z.output<typeof usageLedger>;

export const empty_ledger: UsageLedger = { last: null, days: {}, pending: [0, 0] };

export interface CounterReading {
  readonly boot_id: string;
  readonly ifindex: number;
  readonly rx_bytes: number;
  readonly tx_bytes: number;
  /** Since boot. */
  readonly uptime_ms: number;
  /** The interface came to be while it was watched for, so all that it has counted is new. */
  readonly isNew: boolean;
  readonly speed_bps: number | undefined;
  /** Null: the clock is not set. */
  readonly day: string | null;
}

/** Days that are kept: a billing month and the one before. */
export const days_max = 62;
/** Some modems report their counters in bursts, so a short interval may show the bytes of a longer one. */
const burst_ms = 5_000;
const two_pow_32 = 2 ** 32;

/** The ledger after a reading of bytes that another link counts. */
export function skip(ledger: UsageLedger, reading: CounterReading): UsageLedger {
  const { boot_id, ifindex, rx_bytes: rx, tx_bytes: tx, uptime_ms } = reading;
  return { ...ledger, last: { boot_id, ifindex, rx, tx, uptime_ms } };
}

/** The ledger after one more reading. */
export function count(ledger: UsageLedger, reading: CounterReading): UsageLedger {
  const { day } = reading;
  const { last } = skip(ledger, reading);
  const passed = bytesPassed(ledger, reading);
  // The very first reading is where counting begins.
  if (!passed) return { ...ledger, last };
  if (day === null) return { ...ledger, last, pending: sum(ledger.pending, passed) };
  const today = sum(sum(ledger.days[day] ?? [0, 0], ledger.pending), passed);
  return { last, days: newest({ ...ledger.days, [day]: today }), pending: [0, 0] };
}

/** Today and the billing month so far, in GB of 10^9 bytes; null until something was counted and the clock is set. */
export function usageOf({ days }: UsageLedger, day: string | null, month_starts_on: number): Usage {
  const known = Object.entries(days);
  if (day === null || known.length === 0) {
    return { today_rx_gb: null, today_tx_gb: null, month_rx_gb: null, month_tx_gb: null };
  }
  const [start, end] = [monthStart(day, month_starts_on), monthEnd(day, month_starts_on)];
  // Days after today were counted while the clock was ahead: their bytes have passed all the same.
  const month = known
    .filter(([each]) => each >= start && each <= end)
    .reduce<Both>((total, [, counted]) => sum(total, counted), [0, 0]);
  const today = days[day] ?? [0, 0];
  return {
    today_rx_gb: gigabytes(today[0]),
    today_tx_gb: gigabytes(today[1]),
    month_rx_gb: gigabytes(month[0]),
    month_tx_gb: gigabytes(month[1]),
  };
}

/** Since the last reading; undefined when there is nothing to compare with. */
function bytesPassed({ last }: UsageLedger, reading: CounterReading): Both | undefined {
  const { rx_bytes, tx_bytes, uptime_ms, speed_bps } = reading;
  if (!last && !reading.isNew) return undefined;
  const isSameBoot = last?.boot_id === reading.boot_id;
  const isSame = isSameBoot && last.ifindex === reading.ifindex;
  const pause_ms = isSameBoot ? uptime_ms - last.uptime_ms : uptime_ms;
  const most = bytesPossible(speed_bps, pause_ms + burst_ms);
  const bounded = (passed: number): number => (passed <= most ? passed : 0);
  if (!isSame) return [bounded(rx_bytes), bounded(tx_bytes)];
  return [bounded(advance(last.rx, rx_bytes)), bounded(advance(last.tx, tx_bytes))];
}

/** A counter that fell was either reset or, near the top of 32 bits only, has wrapped. */
function advance(from: number, to: number): number {
  if (to >= from) return to - from;
  const isWrap = from < two_pow_32 && from > two_pow_32 * 0.75 && to < two_pow_32 / 4;
  return isWrap ? to + two_pow_32 - from : to;
}

function newest(days: UsageLedger['days']): UsageLedger['days'] {
  const sorted = Object.entries(days).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.slice(-days_max));
}

function sum(a: Both, b: Both): Both {
  return [a[0] + b[0], a[1] + b[1]];
}

/** To the kilobyte. */
function gigabytes(count: number): number {
  return Math.round(count / 1e3) / 1e6;
}

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
const speed_default_bps = 10e9;
/** Counters and clock are not read at the same instant. */
const tolerance = 1.1;

/** The most bytes that can have passed, one way. */
function bytesPossible(speed_bps: number | undefined, pause_ms: number): number {
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
