/** The receivers behind one gpsd: which has a fix, and which has gone mute. */
import type { Position, Tpv } from './gpsd-reports.ts';

/** Receivers of one gpsd; what would be one more is ignored. */
export const receivers_max = 16;

interface Heard {
  readonly position: Position | null;
  readonly heard_ms: number;
}

/** `waiting`: nothing was heard since the start. */
export type ReceiverState = 'fix' | 'no fix' | 'mute' | 'waiting';

export class Receivers {
  readonly #byDevice = new Map<string, Heard>();
  readonly #mute_ms: number;
  readonly #wanted: string | undefined;
  readonly #start_ms: number;

  constructor(mute_ms: number, wanted: string | undefined, now_ms: number) {
    this.#mute_ms = mute_ms;
    this.#wanted = wanted;
    this.#start_ms = now_ms;
  }

  /** True when the report is of a receiver that counts. */
  note({ device, position }: Tpv, now_ms: number): boolean {
    if (this.#wanted !== undefined && device !== this.#wanted) return false;
    if (!this.#byDevice.has(device) && this.#byDevice.size >= receivers_max) return false;
    this.#byDevice.set(device, { position, heard_ms: now_ms });
    return true;
  }

  /** The receiver that counts: one that speaks and has a fix, with a height if possible, first heard first. */
  best(
    now_ms: number,
  ): { readonly device: string; readonly position: Position; readonly age_ms: number } | undefined {
    const fixes = [...this.#byDevice].flatMap(([device, { position, heard_ms }]) => {
      const age_ms = now_ms - heard_ms;
      return position && age_ms <= this.#mute_ms ? [{ device, position, age_ms }] : [];
    });
    return fixes.find(({ position }) => position.altitude !== null) ?? fixes[0];
  }

  state(now_ms: number): ReceiverState {
    if (this.best(now_ms)) return 'fix';
    const heard_ms = Math.max(this.#start_ms, ...[...this.#byDevice.values()].map((each) => each.heard_ms));
    if (now_ms - heard_ms > this.#mute_ms) return 'mute';
    return this.#byDevice.size === 0 ? 'waiting' : 'no fix';
  }
}
