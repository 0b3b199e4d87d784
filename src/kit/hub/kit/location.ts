/** Chooses among the positions that several sources report of the kit, with the age of the chosen one. */
import type { Location } from '../../../contract/kit.ts';
import type { DriverLog, Fix } from '../../../toolkit/driver/driver.ts';
import type { Clock, Stamp } from '../../../platform/clock.ts';
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { altitude_m, latitude, longitude } from '../../../contract/assets.ts';
import { distance_m, type Point } from '../../../toolkit/device/distance.ts';
import { readTextUpToSync, small_bytes_max } from '../../../platform/bounded-file.ts';
import { messageOf } from '../../../platform/errors.ts';
import { texts } from '../texts.ts';

/** A fix older than this is stale; a manual position never is (interface, Limits). */
const stale_after_ms = 30_000;
/** A satellite fix older than this ranks after the manual position. */
export const cached_before_manual_ms = 86_400_000;
/** A receiver whose clock differs by more is wrong about the date (week roll-over), so its time does not count. */
const time_off_max_ms = 86_400_000;

/** A position with the facts shown to the technician beside what is published. */
type Place = NonNullable<ReturnType<Locations['at']>>;

interface Noted {
  /** The driver instance that reported it; null: kept from an earlier run. */
  readonly owner: string | null;
  readonly fix: Omit<Fix, 'age_ms' | 'time_ms'>;
  /** Monotonic time of the fix; minus infinity when unknown. */
  readonly fixed_ms: number;
  /** How old it was when it came, by the receiver's time. */
  readonly late_ms: number;
  /** False: the receiver gave no time, so the fix counts as made when it came. */
  readonly timed: boolean;
  /** The source no longer reports it. */
  readonly kept: boolean;
}

/** Pinned manual position, fresh satellites, fresh modem, the last satellite fix of a day, manual, then what is older. */
export class Locations {
  readonly #byOwner = new Map<string, Noted>();
  /** A configured position stays, whatever happens to the receiver of the same instance. */
  readonly #manual = new Map<string, Noted>();
  #last_satellite: Noted | undefined;

  /** Takes the last satellite fix of an earlier run. Its age is unknown unless both clocks could be trusted. */
  restore({ latitude, longitude, altitude, time_ms }: SavedFix, now: Stamp): void {
    const age_ms = time_ms === null || !now.synced ? -1 : now.time_ms - time_ms;
    const fixed_ms = age_ms < 0 ? Number.NEGATIVE_INFINITY : now.mono_ms - age_ms;
    const fix = { latitude, longitude, altitude, source: 'satellite' } as const;
    this.#last_satellite ??= { owner: null, fix, fixed_ms, late_ms: 0, timed: true, kept: true };
  }

  /** Null removes what this instance measured; the last satellite fix stays as `satellite_cached`. */
  note(owner: string, fix: Fix | null, now: Stamp): void {
    if (!fix) {
      this.#byOwner.delete(owner);
      return;
    }
    const { age_ms, time_ms, ...rest } = fix;
    const true_age_ms = trueAge_ms(age_ms, time_ms, now);
    const fixed_ms = now.mono_ms - true_age_ms;
    const late_ms = true_age_ms - Math.max(0, age_ms);
    const timed = typeof time_ms === 'number';
    const noted: Noted = { owner, fix: rest, fixed_ms, late_ms, timed, kept: false };
    (fix.source === 'manual' ? this.#manual : this.#byOwner).set(owner, noted);
    if (fix.source === 'satellite' && this.#supersedes(noted))
      this.#last_satellite = { ...noted, kept: true };
  }

  /** A receiver reports a position before it knows the date; its first fix with a time shows how old the ones before it were. */
  #supersedes({ owner, fixed_ms, timed }: Noted): boolean {
    const last = this.#last_satellite;
    return !last || fixed_ms >= last.fixed_ms || (timed && !last.timed && owner === last.owner);
  }

  /** Where the kit is at this moment. */
  at(mono_ms: number) {
    const known = [...this.#byOwner.values(), ...this.#manual.values()];
    if (this.#last_satellite) known.push(this.#last_satellite);
    const [best] = known.sort((a, b) => rank(a, mono_ms) - rank(b, mono_ms) || b.fixed_ms - a.fixed_ms);
    if (!best) return undefined;
    const { latitude, longitude, altitude, source } = best.fix;
    const age_ms = mono_ms - best.fixed_ms;
    const stale = isStale(best, mono_ms);
    const shown: Location['source'] =
      source === 'satellite' && (stale || best.kept) ? 'satellite_cached' : source;
    return {
      latitude,
      longitude,
      altitude,
      source: shown,
      stale,
      /** Null: not known, or without meaning for a manual position. */
      age_ms: source === 'manual' || !Number.isFinite(age_ms) ? null : age_ms,
      owner: best.owner,
      /** Age of fixes on arrival when a source keeps reporting but none of its fixes is fresh; else 0. */
      late_ms: Math.max(0, ...[...this.#byOwner.values()].map((each) => lateness_ms(each, mono_ms))),
    };
  }

  /** The newest satellite fix, for keeping. */
  get lastSatellite(): Omit<Noted, 'kept'> | undefined {
    return this.#last_satellite;
  }
}

/** The receiver's time counts where it makes the fix older, and both clocks can be right. */
function trueAge_ms(arrival_ms: number, time_ms: number | null | undefined, now: Stamp): number {
  const age_ms = Math.max(0, arrival_ms);
  if (time_ms === null || time_ms === undefined || !now.synced) return age_ms;
  const reported_ms = now.time_ms - time_ms;
  return Math.abs(reported_ms) > time_off_max_ms ? age_ms : Math.max(age_ms, reported_ms);
}

/** Of a source that reported a moment ago. */
function lateness_ms({ late_ms, fixed_ms }: Noted, mono_ms: number): number {
  const isReporting = mono_ms - (fixed_ms + late_ms) <= stale_after_ms;
  return isReporting && late_ms > stale_after_ms ? late_ms : 0;
}

/** Lower comes first. */
function rank(noted: Noted, mono_ms: number): number {
  const { source, pinned } = noted.fix;
  if (source === 'manual') return pinned ? 0 : 5;
  const isSatellite = source === 'satellite';
  if (!isStale(noted, mono_ms) && !noted.kept) return isSatellite ? 1 : 2;
  const isOld = mono_ms - noted.fixed_ms > cached_before_manual_ms;
  return (isOld ? 6 : 3) + (isSatellite ? 0 : 1);
}

function isStale({ fix, fixed_ms }: Noted, mono_ms: number): boolean {
  return fix.source !== 'manual' && mono_ms - fixed_ms > stale_after_ms;
}

/** Between two writes. */
export const write_every_ms = 60_000;
/** A kit that stands still renews the time of its fix this often. */
export const renew_every_ms = 900_000;
const moved_m = 25;

const savedFix = z.object({
  latitude,
  longitude,
  altitude: altitude_m.nullable(),
  /** UTC; null: the clock could not be trusted then. */
  time_ms: z.number().nullable(),
});
type SavedFix = z.output<typeof savedFix>;

/** Keeps the last satellite fix of the kit in a small file, so that a restart does not forget where the kit is. */
export class LastFix {
  readonly #file: string;
  readonly #onFault: (error: unknown) => void;
  #saved: SavedFix | undefined;
  #tried_ms = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  /** `onFault` is called once when the file cannot be written, and again only after a write that succeeded. */
  constructor(file: string, onFault: (error: unknown) => void) {
    this.#file = file;
    this.#onFault = onFault;
  }

  /** What an earlier run kept; undefined when there is none or it is damaged. */
  read(): SavedFix | undefined {
    try {
      this.#saved = savedFix.safeParse(JSON.parse(readTextUpToSync(this.#file, small_bytes_max))).data;
    } catch {
      // Nothing was kept, or half of it: the next fix replaces it.
    }
    return this.#saved;
  }

  /** Writes it if it moved or the kept one grew old, at most once in `write_every_ms`. */
  keep(fix: SavedFix, mono_ms: number): void {
    const since_ms = mono_ms - this.#tried_ms;
    if (since_ms < write_every_ms) return;
    const isMoved = !this.#saved || distance_m(this.#saved, fix) >= moved_m;
    const isTimed = this.#saved?.time_ms === null && fix.time_ms !== null;
    if (!isMoved && !isTimed && since_ms < renew_every_ms) return;
    this.#tried_ms = mono_ms;
    try {
      writeDurably(this.#file, JSON.stringify(fix));
      this.#saved = fix;
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#onFault(error);
      this.#isFailing = true;
    }
  }
}

function writeDurably(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.new`;
  const descriptor = openSync(fresh, 'w', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(fresh, file);
}

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

interface KitLocationOptions {
  /** Where the last satellite fix is kept. */
  readonly file: string;
  readonly clock: Clock;
  readonly cityOf: CityOf;
  readonly log: DriverLog;
}

/** Where the kit is: the chosen position with the name of its city, for telemetry, the gateway's asset and status. */
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
