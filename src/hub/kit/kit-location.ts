/** Where the kit is: the chosen position with the name of its city, for telemetry, the gateway's asset and status. */
import type { Location } from '../../contract/kit.ts';
import type { DriverLog, Fix } from '../../driver/driver.ts';
import { messageOf } from '../../errors.ts';
import { distance_m, type Point } from '../../device/distance.ts';
import type { Clock } from '../../platform/clock.ts';
import { LastFix } from './last-fix.ts';
import { Locations, type Place } from './location.ts';
import { texts } from '../texts.ts';

/** The city of a kit that moved less is not looked up again. */
const city_again_m = 500;

/** Name of the city at a place; null: none is near. */
export type CityOf = (place: Point) => string | null;

/** What status shows beside the published location. */
export interface LocationView {
  readonly age_s: number | null;
  /** The driver instance; null: kept from an earlier run, or unknown. */
  readonly driver: string | null;
  /** Why the location is unknown or not fresh. */
  readonly reason: string | null;
}

export interface KitLocationOptions {
  /** Where the last satellite fix is kept. */
  readonly file: string;
  readonly clock: Clock;
  readonly cityOf: CityOf;
  readonly log: DriverLog;
}

export class KitLocation {
  readonly #options: KitLocationOptions;
  readonly #locations = new Locations();
  readonly #last_fix: LastFix;
  #city: { readonly at: Point; readonly name: string | null } | undefined;
  #cityFailed = false;

  constructor(options: KitLocationOptions) {
    this.#options = options;
    const { file, clock, log } = options;
    this.#last_fix = new LastFix(file, (error) =>
      log.warn({ file, reason: messageOf(error) }, texts.position_not_saved),
    );
    const saved = this.#last_fix.read();
    if (saved) this.#locations.restore(saved, clock.stamp());
  }

  note(owner: string, fix: Fix | null): void {
    this.#locations.note(owner, fix, this.#options.clock.stamp());
  }

  /** The location as it is published now; undefined: unknown. */
  now(): Location | undefined {
    const place = this.#place();
    if (!place) return undefined;
    const { latitude, longitude, altitude, source, stale } = place;
    return { latitude, longitude, altitude, source, stale, kit_location: this.#cityAt(place) };
  }

  view(): LocationView {
    const place = this.#place();
    if (!place) {
      return { age_s: null, driver: null, reason: texts.no_position };
    }
    const age_s = place.age_ms === null ? null : Math.round(place.age_ms / 1_000);
    return { age_s, driver: place.owner, reason: reasonOf(place) };
  }

  /** Writes the last satellite fix when it is due. */
  keep(): void {
    const noted = this.#locations.lastSatellite;
    if (!noted || noted.owner === null) return;
    const { time_ms, mono_ms, synced } = this.#options.clock.stamp();
    const { latitude, longitude, altitude } = noted.fix;
    const fixed_time_ms = synced ? time_ms - (mono_ms - noted.fixed_ms) : null;
    this.#last_fix.keep({ latitude, longitude, altitude, time_ms: fixed_time_ms }, mono_ms);
  }

  #place(): Place | undefined {
    return this.#locations.at(this.#options.clock.stamp().mono_ms);
  }

  #cityAt({ latitude, longitude }: Point): string | null {
    const at = { latitude, longitude };
    if (!this.#city || distance_m(this.#city.at, at) > city_again_m) {
      this.#city = { at, name: this.#look(at) };
    }
    return this.#city.name;
  }

  #look(at: Point): string | null {
    try {
      return this.#options.cityOf(at);
    } catch (error) {
      const { log } = this.#options;
      if (!this.#cityFailed) log.warn({ reason: messageOf(error) }, texts.city_failed);
      this.#cityFailed = true;
      return null;
    }
  }
}

function reasonOf({ source, stale, age_ms, owner, late_ms }: Place): string | null {
  if (source === 'manual') return 'from the configuration';
  if (owner === null) return 'no fix since the connector started; using the last one of an earlier run';
  if (source === 'satellite_cached' && late_ms > 0) {
    return `the fixes are ${Math.round(late_ms / 1_000)} s old on arrival; check the clock of the receiver and of this machine`;
  }
  if (source === 'satellite_cached') return 'no satellite fix now; using the last one';
  return stale && age_ms !== null ? 'the source has no newer fix' : null;
}
