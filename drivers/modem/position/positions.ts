/** Reads the position from the modem whose satellite receiver is on, and reports once when there is none to read. */
import { z } from 'zod';
import type { DriverLog, Fix } from '../../../src/toolkit/driver/driver.ts';
import type { Bus } from '../../../src/toolkit/device/dbus/bus.ts';
import { readLocation } from '../dbus/manager.ts';
import type { Modem } from '../dbus/properties.ts';
import { texts } from '../texts.ts';
import { day_ms } from '../../../src/platform/time.ts';

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

/** `MMModemLocationSource`: coordinates from satellites. Cell ids are not a position. */
const gps_raw_source = 2;

const gpsRaw = z.looseObject({
  'utc-time': z.string().max(32),
  latitude: z.number().min(-90).max(90),
  longitude: z.number().min(-180).max(180),
});

/** The receiver reports only the time of day: a time slightly in the future means now, any other one before midnight. */
const ahead_max_ms = 60_000;
/** Age of a first fix at least: only its change shows that it is not one of another day. */
const first_age_min_ms = 60_000;

/** One for each modem. */
export class Fixes {
  #last: string | undefined;

  /**
   * Returns the fix with its age; undefined when there is none or it was read before. The first fix is never fresh, since ModemManager
   * keeps the last one of a receiver that sees nothing; later ones are dated by when they changed, which needs no correct clock. The altitude is left out: it is above mean sea level.
   */
  read(raw: unknown, time_ms: number): Fix | undefined {
    const fix = gpsRaw.safeParse(raw).data;
    if (!fix || (fix.latitude === 0 && fix.longitude === 0)) return undefined;
    const { latitude, longitude } = fix;
    const text = `${fix['utc-time']} ${latitude} ${longitude}`;
    if (text === this.#last) return undefined;
    const age_ms = this.#last === undefined ? ageOf(fix['utc-time'], time_ms) : 0;
    if (age_ms === undefined) return undefined;
    this.#last = text;
    return { latitude, longitude, altitude: null, source: 'cellular', age_ms };
  }
}

/** From `HHMMSS.ss`; undefined when that is no time. */
function ageOf(utc_time: string, time_ms: number): number | undefined {
  const [, hours, minutes, seconds] = /^(\d{2})(\d{2})(\d{2}(?:\.\d+)?)$/u.exec(utc_time) ?? [];
  if (hours === undefined) return undefined;
  const of_day_ms = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
  const age_ms = (((time_ms - of_day_ms) % day_ms) + day_ms) % day_ms;
  return Math.max(age_ms > day_ms - ahead_max_ms ? 0 : age_ms, first_age_min_ms);
}
