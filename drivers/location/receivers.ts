/** Tracks the receivers behind one gpsd: which has a fix and which sends nothing any more. */
import { silenceSince } from '../../src/platform/stalls.ts';
import type { Position, Tpv } from './gpsd-reports.ts';

/** Receivers of one gpsd; more are ignored. */
export const receivers_max = 16;

interface Report {
  readonly position: Position | null;
  readonly received_ms: number;
}

/** `waiting`: no report since the start. */
export type ReceiverState = 'fix' | 'no fix' | 'mute' | 'waiting';

interface RecentFix {
  readonly position: Position;
  readonly age_ms: number;
}

/** Receivers differ by less when both are on time; one behind a modem or a converter may be late by a minute. */
const behind_min_ms = 5_000;
/** A receiver that is wrong about the date (week roll-over) does not make the others late. */
const behind_max_ms = 86_400_000;

/** Whether the fixes of a receiver arrive later than those of another, by the time that both report. */
function isBehind(fix: RecentFix, other: RecentFix): boolean {
  if (fix.position.time_ms === null || other.position.time_ms === null) return false;
  const behind_ms = other.position.time_ms + other.age_ms - (fix.position.time_ms + fix.age_ms);
  return behind_ms > behind_min_ms && behind_ms <= behind_max_ms;
}

export class Receivers {
  readonly #byDevice = new Map<string, Report>();
  readonly #mute_ms: number;
  readonly #wanted: string | undefined;
  readonly #start_ms: number;

  constructor(mute_ms: number, wanted: string | undefined, now_ms: number) {
    this.#mute_ms = mute_ms;
    this.#wanted = wanted;
    this.#start_ms = now_ms;
  }

  /** Stores a report. False for a receiver that is not used. */
  note({ device, position }: Tpv, now_ms: number): boolean {
    if (this.#wanted !== undefined && device !== this.#wanted) return false;
    if (!this.#byDevice.has(device) && this.#byDevice.size >= receivers_max) return false;
    this.#byDevice.set(device, { position, received_ms: now_ms });
    return true;
  }

  /** The receiver to use: the first one with a recent fix that is not late, with an altitude if any has one. */
  best(
    now_ms: number,
  ): { readonly device: string; readonly position: Position; readonly age_ms: number } | undefined {
    const fixes = [...this.#byDevice].flatMap(([device, { position, received_ms }]) => {
      const age_ms = now_ms - received_ms;
      return position && silenceSince(received_ms, now_ms) <= this.#mute_ms
        ? [{ device, position, age_ms }]
        : [];
    });
    const current = fixes.filter((fix) => !fixes.some((other) => isBehind(fix, other)));
    return current.find(({ position }) => position.altitude !== null) ?? current[0];
  }

  state(now_ms: number): ReceiverState {
    if (this.best(now_ms)) return 'fix';
    const received_ms = Math.max(
      this.#start_ms,
      ...[...this.#byDevice.values()].map((each) => each.received_ms),
    );
    if (silenceSince(received_ms, now_ms) > this.#mute_ms) return 'mute';
    return this.#byDevice.size === 0 ? 'waiting' : 'no fix';
  }
}
