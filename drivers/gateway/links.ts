/** Turns readings of interfaces into links: status, public address, throughput and its peak. */
import type { Link } from '../../src/contract/kit.ts';
import { isConfigured, publicAddress } from './addresses.ts';
import type { WanInterface } from './interfaces.ts';

/** Addresses by interface name; undefined when they cannot be known. */
export type Addresses = ReadonlyMap<string, readonly string[]> | undefined;

interface Seen {
  readonly reading: WanInterface;
  readonly mono_ms: number;
  readonly rx_bps_max: number | undefined;
  readonly tx_bps_max: number | undefined;
}

/** Remembers one reading for each interface that is there, and its peaks since the driver was started. */
export class Links {
  #seen: ReadonlyMap<string, Seen> = new Map();

  /** `mono_ms` is monotonic: a jump of the time of day changes no throughput. */
  update(readings: readonly WanInterface[], addresses: Addresses, mono_ms: number): Link[] {
    const seen = new Map<string, Seen>();
    const links = readings.map((reading) => {
      const before = this.#seen.get(reading.name);
      const rates = throughput(before, reading, mono_ms);
      const peaks = {
        rx_bps_max: larger(before?.rx_bps_max, rates.rx_bps),
        tx_bps_max: larger(before?.tx_bps_max, rates.tx_bps),
      };
      seen.set(reading.name, { reading, mono_ms, ...peaks });
      const own = addresses && (addresses.get(reading.name) ?? []);
      const ip = own && publicAddress(own);
      const isOnline = reading.hasCarrier && (own === undefined || isConfigured(own));
      return {
        name: reading.name,
        type: reading.type,
        status: isOnline ? ('online' as const) : ('offline' as const),
        ip,
        ...rates,
        ...peaks,
      };
    });
    this.#seen = seen;
    return links;
  }
}

/** Bits per second since the last reading; unknown when there was none or the counters began anew. */
function throughput(before: Seen | undefined, now: WanInterface, mono_ms: number) {
  const isSame = before !== undefined && before.reading.ifindex === now.ifindex;
  const pause_s = isSame ? (mono_ms - before.mono_ms) / 1000 : 0;
  return {
    rx_bps: bitsPerSecond(before?.reading.rx_bytes, now.rx_bytes, pause_s),
    tx_bps: bitsPerSecond(before?.reading.tx_bytes, now.tx_bytes, pause_s),
  };
}

function bitsPerSecond(
  before: number | undefined,
  now: number | undefined,
  pause_s: number,
): number | undefined {
  if (before === undefined || now === undefined || pause_s <= 0 || now < before) return undefined;
  return Math.round(((now - before) * 8) / pause_s);
}

function larger(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}
