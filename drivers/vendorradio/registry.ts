/** Shared data of the radios of one driver: owners of MAC addresses, and the signals that each measures of the others. */
import { assetKeyOf, type Station } from './reading.ts';

interface Report {
  readonly at_mono_ms: number;
  readonly rssi_of: ReadonlyMap<string, number | null>;
}

export class Registry {
  /** By name of the radio in the configuration. */
  readonly #macs = new Map<string, string>();
  /** By MAC address of the receiving radio. */
  readonly #reports = new Map<string, Report>();

  /** The radio answered. The driver's bindings decide the owner, so an older record of another entry is replaced. */
  answered(name: string, mac: string): void {
    for (const [other, known] of this.#macs) if (known === mac) this.#macs.delete(other);
    this.#macs.set(name, mac);
  }

  /** From before the restart, until it answers. */
  remember(name: string, mac: string): void {
    if (![...this.#macs.values()].includes(mac)) this.#macs.set(name, mac);
  }

  /** The radio is not configured any more, or in another way. */
  forget(name: string): void {
    this.#macs.delete(name);
  }

  has(mac: string): boolean {
    return [...this.#macs.values()].includes(mac);
  }

  assetKey(mac: string): string | null {
    return this.has(mac) ? assetKeyOf(mac) : null;
  }

  nameOf(mac: string): string | null {
    return [...this.#macs].find(([, known]) => known === mac)?.[0] ?? null;
  }

  report(mac: string, at_mono_ms: number, stations: readonly Station[] | undefined): void {
    this.#reports.set(mac, { at_mono_ms, rssi_of: new Map(stations?.map((each) => [each.mac, each.rssi])) });
  }

  /** Signal of `mac` at `peer`, if measured within `fresh_ms`. */
  rssiAt(peer: string, mac: string, fresh_ms: number): number | null {
    const report = this.#reports.get(peer);
    if (!report || performance.now() - report.at_mono_ms > fresh_ms) return null;
    return report.rssi_of.get(mac) ?? null;
  }
}
