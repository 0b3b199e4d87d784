/** The data cap of a link: how much is used, what the billing month will come to, and whether that is too much. Pure. */
import type { DataCap } from '../../../src/contract/feeds.ts';
import type { Usage } from '../../../src/contract/kit.ts';
import { dayAfter, daysBetween, monthEnd, monthStart } from './calendar.ts';
import type { UsageLedger } from './usage.ts';

export interface CapLimits {
  readonly cap_gb: number;
  /** Share of the cap from which on it is a warning. */
  readonly warn_pct: number;
}

export interface CapReading {
  readonly name: string;
  readonly limits: CapLimits;
  readonly usage: Usage;
  readonly days: UsageLedger['days'];
  /** Null: the clock is not set. */
  readonly day: string | null;
  readonly month_starts_on: number;
}

/** Null while the usage is not known. Both directions count. */
export function capOf({ name, limits, usage, days, day, month_starts_on }: CapReading): DataCap | null {
  const { cap_gb, warn_pct } = limits;
  const { month_rx_gb, month_tx_gb, today_rx_gb, today_tx_gb } = usage;
  if (day === null || typeof month_rx_gb !== 'number' || typeof month_tx_gb !== 'number') return null;
  const used_gb = rounded(month_rx_gb + month_tx_gb);
  const today_gb = (today_rx_gb ?? 0) + (today_tx_gb ?? 0);
  const start = monthStart(day, month_starts_on);
  const last_day = monthEnd(day, month_starts_on);
  const forecast_gb = forecast({ used_gb, today_gb, first: firstDay(days, start, day), day, last_day });
  const used_pct = rounded((100 * used_gb) / cap_gb);
  const state = stateOf({ used_pct, warn_pct, forecast_gb, cap_gb });
  return { name, cap_gb, used_gb, used_pct, forecast_gb, last_day, state };
}

/** Where counting began in this billing month. */
function firstDay(days: UsageLedger['days'], start: string, day: string): string {
  const counted = Object.keys(days).filter((each) => each >= start && each <= day);
  return counted.toSorted()[0] ?? day;
}

interface Course {
  readonly used_gb: number;
  readonly today_gb: number;
  readonly first: string;
  readonly day: string;
  readonly last_day: string;
}

/** The mean of the whole days so far continues until the last one; today counts at least as much. Null on the first day. */
function forecast({ used_gb, today_gb, first, day, last_day }: Course): number | null {
  const whole_days = daysBetween(first, day);
  if (whole_days === 0) return null;
  const before_gb = used_gb - today_gb;
  const daily_gb = before_gb / whole_days;
  return rounded(before_gb + Math.max(today_gb, daily_gb) + daily_gb * daysBetween(day, last_day));
}

function stateOf({
  used_pct,
  warn_pct,
  forecast_gb,
  cap_gb,
}: Pick<DataCap, 'used_pct' | 'forecast_gb' | 'cap_gb'> & { readonly warn_pct: number }): DataCap['state'] {
  if (used_pct >= 100) return 'exceeded';
  if (used_pct >= warn_pct) return 'warning';
  return forecast_gb !== null && forecast_gb > cap_gb ? 'forecast' : 'ok';
}

function rounded(value: number): number {
  return Math.round(value * 1e3) / 1e3;
}

/** The next day, for the texts: the month after it begins then. */
export function renewedOn({ last_day }: Pick<DataCap, 'last_day'>): string {
  return dayAfter(last_day);
}
