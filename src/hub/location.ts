/** Chooses among the positions that several sources report of the kit. */
import type { Location } from '../contract/kit.ts';
import type { Fix } from '../driver/driver.ts';

/** A fix older than this is stale; a pinned manual position never is (interface, Limits). */
export const stale_after_ms = 30_000;

interface Noted extends Fix {
  /** Monotonic time of the fix. */
  readonly fixed_ms: number;
}

/** Fresh fixes come first, satellites before the modem's; then the newest old one; what the technician said comes last. */
export class Locations {
  readonly #byOwner = new Map<string, Noted>();

  note(owner: string, fix: Fix | null, mono_ms: number): void {
    if (fix) this.#byOwner.set(owner, { ...fix, fixed_ms: mono_ms - fix.age_ms });
    else this.#byOwner.delete(owner);
  }

  /** Where the kit is at this monotonic time. */
  at(mono_ms: number): Location | undefined {
    const best = [...this.#byOwner.values()].sort((a, b) => rank(a, mono_ms) - rank(b, mono_ms))[0];
    if (!best) return undefined;
    const { latitude, longitude, altitude } = best;
    const stale = isStale(best, mono_ms);
    const source = stale && best.source === 'satellite' ? 'satellite_cached' : best.source;
    return { latitude, longitude, altitude, source, stale };
  }
}

function rank(fix: Noted, mono_ms: number): number {
  if (fix.source === 'manual') return Number.MAX_VALUE;
  const age_ms = mono_ms - fix.fixed_ms;
  if (isStale(fix, mono_ms)) return age_ms;
  return fix.source === 'satellite' ? -2 : -1;
}

function isStale(fix: Noted, mono_ms: number): boolean {
  return fix.source !== 'manual' && mono_ms - fix.fixed_ms > stale_after_ms;
}
