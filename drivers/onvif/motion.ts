/** Whether there is motion before a camera: the OR of all its detectors, and never for longer than it is confirmed. */
import { sleep } from '../../src/platform/time.ts';
import type { MotionNote } from './topics.ts';

export interface MotionParts {
  readonly hold_max_ms: number;
  /** Each edge; `reason` when it is not the camera's word. */
  readonly edge: (detected: boolean, reason: string | undefined) => void;
}

/** Detectors of one camera. A camera that invents new ones without end loses the oldest. */
const detectors_max = 256;
/** A pulse has no end of its own. */
const pulse_ms = 5_000;
/** Time in which a camera that was asked says again that there is motion. */
const answer_ms = 3_000;

/** Guards the states of the detectors and the timer that takes back what nobody confirms. */
export class Motion {
  readonly #parts: MotionParts;
  readonly #active = new Map<string, { readonly isPulse: boolean }>();
  #detected = false;
  #confirmed = 0;
  #timer = new AbortController();
  #ask: () => Promise<void> = async () => undefined;

  constructor(parts: MotionParts) {
    this.#parts = parts;
  }

  take(notes: readonly MotionNote[]): void {
    for (const { key, state } of notes) {
      this.#active.delete(key);
      if (state === 'idle' || state === 'gone') continue;
      const oldest = this.#active.size >= detectors_max ? this.#active.keys().next().value : undefined;
      if (oldest !== undefined) this.#active.delete(oldest);
      this.#active.set(key, { isPulse: state === 'pulse' });
      this.#confirmed += 1;
    }
    this.#tell(undefined);
    this.#hold();
  }

  /** `ask` makes the camera say again how things stand, and never rejects. */
  confirmWith(ask: () => Promise<void>): void {
    this.#ask = ask;
  }

  /** Nothing is known any more: motion that was on is taken back with the reason. */
  forget(reason: string): void {
    this.#active.clear();
    this.#tell(reason);
    this.#timer.abort();
  }

  #tell(reason: string | undefined): void {
    const detected = this.#active.size > 0;
    if (detected === this.#detected) return;
    this.#detected = detected;
    this.#parts.edge(detected, reason);
  }

  /** Starts the wait anew with each word of the camera. */
  #hold(): void {
    this.#timer.abort();
    if (this.#active.size === 0) return;
    this.#timer = new AbortController();
    const isPulse = [...this.#active.values()].every((each) => each.isPulse);
    void this.#expire(isPulse ? pulse_ms : this.#parts.hold_max_ms, isPulse, this.#timer.signal);
  }

  async #expire(ms: number, isPulse: boolean, signal: AbortSignal): Promise<void> {
    await sleep(ms, signal);
    if (signal.aborted) return;
    if (isPulse) {
      this.forget('no further crossing');
      return;
    }
    const before = this.#confirmed;
    await this.#ask();
    await sleep(Math.min(answer_ms, ms), signal);
    if (signal.aborted || this.#confirmed !== before) return;
    this.forget(`not confirmed by the camera for ${Math.round(ms / 1_000)} s`);
  }
}
