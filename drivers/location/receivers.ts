/** Tracks the receivers behind one gpsd: which has a fix and which sends nothing any more. */
import type { Position, Tpv } from './gpsd-reports.ts';

/** Receivers of one gpsd; more are ignored. */
export const receivers_max = 16;

interface Report {
  readonly position: Position | null;
  readonly received_ms: number;
}

/** `waiting`: no report since the start. */
export type ReceiverState = 'fix' | 'no fix' | 'mute' | 'waiting';

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

  /** The receiver to use: the first one with a recent fix, with an altitude if any has one. */
  best(
    now_ms: number,
  ): { readonly device: string; readonly position: Position; readonly age_ms: number } | undefined {
    const fixes = [...this.#byDevice].flatMap(([device, { position, received_ms }]) => {
      const age_ms = now_ms - received_ms;
      return position && age_ms <= this.#mute_ms ? [{ device, position, age_ms }] : [];
    });
    return fixes.find(({ position }) => position.altitude !== null) ?? fixes[0];
  }

  state(now_ms: number): ReceiverState {
    if (this.best(now_ms)) return 'fix';
    const received_ms = Math.max(
      this.#start_ms,
      ...[...this.#byDevice.values()].map((each) => each.received_ms),
    );
    if (now_ms - received_ms > this.#mute_ms) return 'mute';
    return this.#byDevice.size === 0 ? 'waiting' : 'no fix';
  }
}
