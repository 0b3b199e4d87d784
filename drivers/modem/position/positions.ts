/** Reads the position from the modem whose satellite receiver is on, and reports once when there is none to read. */
import type { DriverLog, Fix } from '../../../src/driver/driver.ts';
import type { Bus } from '../../../src/device/dbus/bus.ts';
import { Fixes, gps_raw_source } from './fix.ts';
import { readLocation } from '../dbus/manager.ts';
import type { Modem } from '../dbus/properties.ts';
import { texts } from '../texts.ts';

export class Positions {
  readonly #log: DriverLog;
  /** By object path of the modem; removed with it. */
  #fixes: ReadonlyMap<string, Fixes> = new Map();
  /** The reason that was logged last. */
  #logged: string | undefined;

  constructor(log: DriverLog) {
    this.#log = log;
  }

  /** Reads a new fix from the first modem that has one. Throws `DeviceUnreachable`. */
  async read(bus: Bus, modems: readonly Modem[]): Promise<Fix | undefined> {
    this.#fixes = new Map(modems.map(({ path }) => [path, this.#fixes.get(path) ?? new Fixes()]));
    const receivers = modems.filter(({ location }) => hasGps(location.Enabled));
    if (modems.length > 0) this.#logChange(receivers.length > 0 ? undefined : texts.receivers_off);
    for (const { path } of receivers) {
      const answer = await readLocation(bus, path, gps_raw_source);
      if ('refused' in answer) {
        this.#logChange(answer.refused);
        continue;
      }
      const fix = this.#fixes.get(path)?.read(answer.value, Date.now());
      if (fix) return fix;
    }
    return undefined;
  }

  #logChange(reason: string | undefined): void {
    if (reason === this.#logged) return;
    this.#logged = reason;
    const remedy = texts.switch_receiver_on;
    if (reason === undefined) this.#log.info({}, texts.position_available);
    else this.#log.warn({ reason, remedy }, texts.position_unavailable);
  }
}

function hasGps(enabled = 0): boolean {
  return Math.floor(enabled / gps_raw_source) % 2 === 1;
}
