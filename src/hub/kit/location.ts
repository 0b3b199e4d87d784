/** Chooses among the positions that several sources report of the kit, with the age of the chosen one. */
import type { Location } from '../../contract/kit.ts';
import type { Fix } from '../../driver/driver.ts';
import type { Stamp } from '../../platform/clock.ts';
import type { SavedFix } from './last-fix.ts';

/** A fix older than this is stale; a manual position never is (interface, Limits). */
export const stale_after_ms = 30_000;
/** A satellite fix older than this ranks after the manual position. */
export const cached_before_manual_ms = 86_400_000;
/** A receiver whose clock differs by more is wrong about the date (week roll-over), so its time does not count. */
const time_off_max_ms = 86_400_000;

/** A position with the facts shown to the technician beside what is published. */
export interface Place {
  readonly latitude: number;
  readonly longitude: number;
  readonly altitude: number | null;
  readonly source: Location['source'];
  readonly stale: boolean;
  /** Null: not known, or without meaning for a manual position. */
  readonly age_ms: number | null;
  /** The driver instance that reported it; null: kept from an earlier run. */
  readonly owner: string | null;
  /** Age of fixes on arrival when a source keeps reporting but none of its fixes is fresh; else 0. */
  readonly late_ms: number;
}

interface Noted {
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
  at(mono_ms: number): Place | undefined {
    const known = [...this.#byOwner.values(), ...this.#manual.values()];
    if (this.#last_satellite) known.push(this.#last_satellite);
    const [best] = known.sort((a, b) => rank(a, mono_ms) - rank(b, mono_ms) || b.fixed_ms - a.fixed_ms);
    if (!best) return undefined;
    const { latitude, longitude, altitude, source } = best.fix;
    const age_ms = mono_ms - best.fixed_ms;
    const stale = isStale(best, mono_ms);
    return {
      latitude,
      longitude,
      altitude,
      source: source === 'satellite' && (stale || best.kept) ? 'satellite_cached' : source,
      stale,
      age_ms: source === 'manual' || !Number.isFinite(age_ms) ? null : age_ms,
      owner: best.owner,
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
