/** Counts the bytes of a link by day, from counters that reset, wrap and vanish, under a clock that may not be set. Pure. */
import { z } from 'zod';
import type { Usage } from '../../../src/contract/kit.ts';
import { monthEnd, monthStart } from './calendar.ts';

const bytes = z.number().nonnegative();
const both = z.tuple([bytes, bytes]);
type Both = z.output<typeof both>;

/** A reading that does not follow from the one before. */
const doubt = z.object({ value: bytes, uptime_ms: z.number() });
type Doubt = z.output<typeof doubt>;

export const usageLedger = z.object({
  /** The counters when they were last read without doubt, and what they belong to. */
  last: z
    .object({
      boot_id: z.string(),
      ifindex: z.number(),
      rx: bytes,
      tx: bytes,
      uptime_ms: z.number(),
      /** What was read since and is not believed yet, received and sent; left out: nothing. */
      doubts: z.tuple([doubt.nullable(), doubt.nullable()]).optional(),
    })
    .nullable(),
  /** The last day of which some bytes are not known, since a counter jumped. */
  unknown_on: z.string().optional(),
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
  /** The highest rate that the link has shown, received and sent; null: none yet. */
  readonly peaks_bps?: readonly [number | null, number | null];
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

export interface Counted {
  readonly ledger: UsageLedger;
  /** The reading follows from the one before, so that rates can be made of the two. */
  readonly isSure: boolean;
}

/** The ledger after one more reading. */
export function count(ledger: UsageLedger, reading: CounterReading): Counted {
  const { day } = reading;
  const passed = bytesPassed(ledger, reading);
  // The very first reading is where counting begins.
  if (!passed) return { ledger: skip(ledger, reading), isSure: true };
  const { bytes: counted, last, isUnknown } = passed;
  const isSure = !isUnknown && last?.doubts === undefined;
  const known = { ...ledger, last, ...(isUnknown && day !== null ? { unknown_on: day } : {}) };
  if (day === null) return { ledger: { ...known, pending: sum(ledger.pending, counted) }, isSure };
  const today = sum(sum(ledger.days[day] ?? [0, 0], ledger.pending), counted);
  const days = newest({ ...ledger.days, [day]: today });
  return { ledger: { ...known, days, pending: [0, 0] }, isSure };
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

interface Passed {
  readonly bytes: Both;
  readonly last: UsageLedger['last'];
  readonly isUnknown: boolean;
}

/** Since the last reading; undefined when there is nothing to compare with. */
function bytesPassed(ledger: UsageLedger, reading: CounterReading): Passed | undefined {
  const { last } = ledger;
  if (!last && !reading.isNew) return undefined;
  const isSame = last?.boot_id === reading.boot_id && last.ifindex === reading.ifindex;
  return isSame ? bytesSince(last, reading) : bytesFromNothing(ledger, reading);
}

/** Of another interface than before, or after a reboot: its counters began at nothing. */
function bytesFromNothing(ledger: UsageLedger, reading: CounterReading): Passed {
  const { rx_bytes, tx_bytes, uptime_ms, speed_bps, boot_id } = reading;
  const before_ms = ledger.last?.boot_id === boot_id ? ledger.last.uptime_ms : 0;
  const most = bytesPossible(speed_bps, uptime_ms - before_ms + burst_ms);
  const bounded = (passed: number): number => (passed <= most ? passed : 0);
  const { last } = skip(ledger, reading);
  return { bytes: [bounded(rx_bytes), bounded(tx_bytes)], last, isUnknown: false };
}

function bytesSince(last: NonNullable<UsageLedger['last']>, reading: CounterReading): Passed {
  const { rx_bytes, tx_bytes, uptime_ms, speed_bps, peaks_bps = [null, null] } = reading;
  const { doubts = [null, null] } = last;
  const since = (value: number): Doubt => ({ value, uptime_ms: last.uptime_ms });
  const now = (value: number): Doubt => ({ value, uptime_ms });
  const rx = step(since(last.rx), {
    doubt: doubts[0],
    now: now(rx_bytes),
    speed_bps,
    peak_bps: peaks_bps[0],
  });
  const tx = step(since(last.tx), {
    doubt: doubts[1],
    now: now(tx_bytes),
    speed_bps,
    peak_bps: peaks_bps[1],
  });
  const isDoubted = rx.doubt !== null || tx.doubt !== null;
  return {
    bytes: [rx.passed, tx.passed],
    last: {
      ...last,
      rx: rx.value,
      tx: tx.value,
      // While one of them is in doubt, time runs for it; the other is compared with a little more time than there was.
      uptime_ms: isDoubted ? last.uptime_ms : uptime_ms,
      doubts: isDoubted ? [rx.doubt, tx.doubt] : undefined,
    },
    isUnknown: rx.isUnknown || tx.isUnknown,
  };
}

interface Step {
  readonly passed: number;
  /** What the next reading is compared with. */
  readonly value: number;
  readonly doubt: Doubt | null;
  readonly isUnknown: boolean;
}

interface Compared {
  readonly doubt: Doubt | null;
  readonly now: Doubt;
  readonly speed_bps: number | undefined;
  readonly peak_bps: number | null;
}

/**
 * One counter. A reading that falls, or rises by more than is usual, is believed once the next one follows from it: a reading that
 * was wrong once, higher or lower, changes nothing.
 */
function step(from: Doubt, { doubt, now, speed_bps, peak_bps }: Compared): Step {
  const { value } = now;
  const usual = usualBytes(peak_bps, speed_bps);
  if (value >= from.value && value - from.value <= usual(from, now))
    return { passed: value - from.value, value, doubt: null, isUnknown: false };
  const follows = doubt !== null && value >= doubt.value;
  const most = (a: Doubt, b: Doubt): number => bytesPossible(speed_bps, b.uptime_ms - a.uptime_ms + burst_ms);
  const limit = doubt === null ? 0 : doubt.value < from.value ? usual(doubt, now) : most(doubt, now);
  if (!follows || value - doubt.value > limit)
    return { passed: 0, value: from.value, doubt: now, isUnknown: false };
  const gap =
    doubt.value < from.value
      ? bytesOfFall(from.value, doubt.value, usual(from, doubt))
      : bytesOfJump(from, doubt, { now, speed_bps });
  return { passed: (gap ?? 0) + value - doubt.value, value, doubt: null, isUnknown: gap === null };
}

/**
 * The counter was reset, or has wrapped at 32 bits, whatever fits the time; or it has corrected itself, so that a little less has passed
 * than it had shown. Null: none of these.
 */
function bytesOfFall(from: number, to: number, limit: number): number | null {
  const wrapped = to + two_pow_32 - from;
  if (from < two_pow_32 && from > two_pow_32 * 0.75 && wrapped <= limit) return wrapped;
  if (to > from * corrected_min && from - to <= limit) return to - from;
  return to <= limit && to < from / 2 ? to : null;
}

/** A jump that a fast link explains is traffic, a larger one if it goes on like that; else another counter took over, as of a modem. */
function bytesOfJump(
  from: Doubt,
  to: Doubt,
  { now, speed_bps }: { readonly now: Doubt; readonly speed_bps: number | undefined },
): number | null {
  const bytes = to.value - from.value;
  const pause_ms = to.uptime_ms - from.uptime_ms + burst_ms;
  const next_rate = (now.value - to.value) / Math.max(1, now.uptime_ms - to.uptime_ms);
  const goesOn = bytes / pause_ms <= next_rate * usual_factor;
  const bps = goesOn ? speed_bps : Math.min(fast_bps, speed_bps ?? fast_bps);
  return bytes <= bytesPossible(bps, pause_ms) ? bytes : null;
}

/** Of a value, what is left of it after a correction. */
const corrected_min = 0.99;
/** A rate that needs no second reading, where the link has shown none. */
const usual_bps = 200e6;
/** Of what a link has shown: a little more is usual too. */
const usual_factor = 4;
/** What a WAN of a kit may carry for a moment, where it does not report its speed. */
const fast_bps = 1e9;

function usualBytes(peak_bps: number | null, speed_bps: number | undefined) {
  const usual = Math.max(usual_bps, usual_factor * (peak_bps ?? 0));
  const bps = Math.min(usual, speed_bps ?? speed_default_bps);
  return (a: Doubt, b: Doubt): number => bytesPossible(bps, b.uptime_ms - a.uptime_ms + burst_ms);
}

function newest(days: UsageLedger['days']): UsageLedger['days'] {
  const sorted = Object.entries(days).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.slice(-days_max));
}

/** A correction takes away no more than there is. */
function sum(a: Both, b: Both): Both {
  return [Math.max(0, a[0] + b[0]), Math.max(0, a[1] + b[1])];
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
