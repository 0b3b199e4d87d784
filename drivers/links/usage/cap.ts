/** The data cap of a link: how much is used, what the billing month will come to, and whether that is too much. Pure. */
import type { DataCap, noFeeds } from '../../../src/contract/feeds.ts';
import type { Usage } from '../../../src/contract/kit.ts';
import { dayAfter, daysBetween, monthEnd, monthStart } from './calendar.ts';
import type { UsageLedger } from './usage.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { texts } from '../texts.ts';
import type { Memory } from './memory.ts';

interface CapLimits {
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
function renewedOn({ last_day }: Pick<DataCap, 'last_day'>): string {
  return dayAfter(last_day);
}

/** Between two messages without a change of state. */
const caps_floor_ms = 600_000;

type CapsHost = Pick<DriverHost<typeof noFeeds>, 'publishGateway' | 'log'>;

export class Caps {
  readonly #host: CapsHost;
  readonly #memory: Pick<Memory, 'capState' | 'noteCap'>;
  readonly #seen = new Set<string>();
  #published_ms = Number.NEGATIVE_INFINITY;

  /** `memory` keeps the states, so that a restart repeats no alarm. */
  constructor(host: CapsHost, memory: Pick<Memory, 'capState' | 'noteCap'>) {
    this.#host = host;
    this.#memory = memory;
  }

  report(caps: readonly DataCap[], mono_ms: number): void {
    if (caps.length === 0) return;
    const timestamp = new Date().toISOString();
    const changed = caps.filter(({ name, state }) => state !== this.#memory.capState(name));
    for (const cap of changed) {
      this.#log(cap);
      this.#host.publishGateway('data_cap', { ...cap, timestamp });
      this.#memory.noteCap(cap.name, cap.state);
    }
    const isNew = caps.some(({ name }) => !this.#seen.has(name));
    for (const { name } of caps) this.#seen.add(name);
    if (!isNew && changed.length === 0 && mono_ms - this.#published_ms < caps_floor_ms) return;
    this.#published_ms = mono_ms;
    this.#host.publishGateway('data_caps', { links: [...caps], timestamp });
  }

  #log(cap: DataCap): void {
    const { name, state, used_gb, cap_gb, forecast_gb } = cap;
    const facts = { link: name, used_gb, cap_gb, forecast_gb, renewed_on: renewedOn(cap) };
    if (state === 'ok') this.#host.log.info(facts, texts.cap_ok);
    else this.#host.log.warn(facts, texts.cap_states[state]);
  }
}

/** The sentence by which the kit is degraded; undefined: the cap is kept. */
export function capWeakness(cap: DataCap | null): string | undefined {
  if (cap === null || cap.state === 'ok') return undefined;
  const { name, used_gb, cap_gb, forecast_gb, state } = cap;
  const renewed = renewedOn(cap);
  if (state === 'forecast')
    return texts.cap_forecast(name, { forecast_gb: forecast_gb ?? 0, cap_gb, renewed });
  return texts.cap_used(name, { used_gb, cap_gb, renewed });
}
