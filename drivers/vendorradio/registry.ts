/** What the radios of one driver know of each other: whose MAC address is whose, and what each hears of the others. */
import { assetKeyOf, type Station } from './reading.ts';

interface Report {
  readonly at_mono_ms: number;
  readonly rssi_of: ReadonlyMap<string, number | null>;
}

export class Registry {
  /** By name of the radio in the configuration. */
  readonly #macs = new Map<string, string>();
  /** By MAC address of the radio that hears. */
  readonly #reports = new Map<string, Report>();

  /** False when another radio of the configuration is the same device. */
  claim(name: string, mac: string): boolean {
    for (const [other, known] of this.#macs) if (known === mac && other !== name) return false;
    this.#macs.set(name, mac);
    return true;
  }

  /** From before the restart, until it answers. */
  remember(name: string, mac: string): void {
    if (![...this.#macs.values()].includes(mac)) this.#macs.set(name, mac);
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

  /** What `peer` hears of `mac`, if it has said so within `fresh_ms`. */
  rssiAt(peer: string, mac: string, fresh_ms: number): number | null {
    const report = this.#reports.get(peer);
    if (!report || performance.now() - report.at_mono_ms > fresh_ms) return null;
    return report.rssi_of.get(mac) ?? null;
  }
}
