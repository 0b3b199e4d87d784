/** Reads the byte counters of links: throughput now, its peak in the billing month, and what was carried. */
import type { LinkType } from '../../../src/contract/kit.ts';
import { monthStart } from './calendar.ts';
import type { Wan } from '../interfaces/inventory.ts';
import type { LinkRecord, Memory } from './memory.ts';
import type { Boot } from '../probe/availability.ts';
import {
  type Counters,
  no_rates,
  peakOf,
  type Rates,
  ratesBetween,
  count,
  empty_ledger,
  skip,
  type UsageLedger,
} from './usage.ts';

interface LedgerSpec {
  readonly memory: Memory;
  readonly boot: Boot;
  readonly interval_ms: number;
  readonly month_starts_on: number;
}

export interface Tally {
  readonly rates: Rates;
  readonly peaks: { readonly rx_bps_max: number | null; readonly tx_bps_max: number | null };
  readonly usage: UsageLedger;
}

interface Sample {
  readonly counters: Counters;
  readonly rates: Rates;
}

/** Rates over less than this share of the interval would be noise: a change of the link causes a reading at any time. */
const interval_share = 0.8;

export class Ledger {
  readonly #spec: LedgerSpec;
  readonly #samples = new Map<string, Sample>();
  #indexes: ReadonlySet<number> | null = null;

  constructor(spec: LedgerSpec) {
    this.#spec = spec;
  }

  /** `indexes` are all interfaces of this reading, WAN or not: what is none of these at the next one is new then. */
  endReading(indexes: Iterable<number>, listed: ReadonlySet<string>): void {
    this.#indexes = new Set(indexes);
    for (const name of this.#samples.keys()) if (!listed.has(name)) this.#samples.delete(name);
  }

  take(
    wan: Wan,
    type: LinkType,
    { at, day }: { readonly at: { readonly mono_ms: number }; readonly day: string | null },
  ): Tally {
    const { memory } = this.#spec;
    const counters = countersOf(wan, at.mono_ms);
    if (!wan.present || !counters) {
      this.#samples.delete(wan.name);
      return this.#tally(no_rates, memory.get(wan.name));
    }
    const { speed_bps } = wan.present.state;
    const record = memory.get(wan.name);
    const { boot } = this.#spec;
    const reading = {
      ...counters,
      boot_id: boot.id,
      uptime_ms: at.mono_ms + boot.offset_ms,
      isNew: this.#indexes !== null && !this.#indexes.has(counters.ifindex),
      speed_bps,
      peaks_bps: [record?.peak.rx_bps ?? null, record?.peak.tx_bps ?? null] as const,
      day,
    };
    const before = record?.usage ?? empty_ledger;
    const { ledger: usage, isSure } =
      wan.counted_on === null ? count(before, reading) : { ledger: skip(before, reading), isSure: true };
    const rates = isSure
      ? this.#rates(wan.name, counters, speed_bps)
      : this.#unsure(wan.name, usage, counters);
    const peak = this.#peak(record, rates, day);
    return this.#tally(rates, memory.update(wan.name, type, { usage, peak }));
  }

  #tally(rates: Rates, record: LinkRecord | undefined): Tally {
    return {
      rates,
      peaks: { rx_bps_max: record?.peak.rx_bps ?? null, tx_bps_max: record?.peak.tx_bps ?? null },
      usage: record?.usage ?? empty_ledger,
    };
  }

  #rates(name: string, counters: Counters, speed_bps: number | undefined): Rates {
    const last = this.#samples.get(name);
    const isSame = last?.counters.ifindex === counters.ifindex;
    const pause_ms = isSame ? counters.mono_ms - last.counters.mono_ms : 0;
    if (isSame && pause_ms < this.#spec.interval_ms * interval_share) return last.rates;
    const rates = ratesBetween(last?.counters, counters, speed_bps);
    this.#samples.set(name, { counters, rates });
    return rates;
  }

  /** While a reading is in doubt the next one is compared with the one before it; bytes that are not known are no rate either. */
  #unsure(name: string, { last }: UsageLedger, counters: Counters): Rates {
    if (last?.doubts === undefined) this.#samples.set(name, { counters, rates: no_rates });
    return no_rates;
  }

  /** Reset at each billing month; while the clock is not set, the month continues. */
  #peak(record: LinkRecord | undefined, rates: Rates, day: string | null): LinkRecord['peak'] {
    const known = record?.peak ?? { month: null, rx_bps: null, tx_bps: null };
    const month = day === null ? known.month : monthStart(day, this.#spec.month_starts_on);
    const isOver = known.month !== null && month !== known.month;
    return {
      month,
      rx_bps: peakOf(isOver ? null : known.rx_bps, rates.rx_bps),
      tx_bps: peakOf(isOver ? null : known.tx_bps, rates.tx_bps),
    };
  }
}

function countersOf({ present }: Wan, mono_ms: number): Counters | undefined {
  const { rx_bytes, tx_bytes } = present?.state ?? {};
  if (!present || rx_bytes === undefined || tx_bytes === undefined) return undefined;
  return { ifindex: present.nature.ifindex, rx_bytes, tx_bytes, mono_ms };
}
