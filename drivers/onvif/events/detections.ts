/** What the detectors of a camera see: motion, tampering, a doorbell, each with its own state and edges. */
import type { Detection, DetectionNote, DetectorNote } from './topics.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';

export interface DetectionsParts {
  readonly hold_max_ms: number;
  /** Each edge; `reason` when the camera did not report it. */
  readonly edge: (detection: Detection, detected: boolean, reason: string | undefined) => void;
}

const kinds: readonly Detection[] = ['motion', 'tamper', 'doorbell'];

export class Detections {
  readonly #states: ReadonlyMap<Detection, Motion>;

  constructor({ hold_max_ms, edge }: DetectionsParts) {
    this.#states = new Map(
      kinds.map((kind) => [
        kind,
        new Motion({ hold_max_ms, edge: (detected, reason) => edge(kind, detected, reason) }),
      ]),
    );
  }

  take(notes: readonly DetectionNote[]): void {
    for (const [kind, state] of this.#states) {
      state.take(notes.filter(({ detection }) => detection === kind));
    }
  }

  /** `ask` makes the camera send its states again, and never rejects. */
  confirmWith(ask: () => Promise<void>): void {
    for (const state of this.#states.values()) state.confirmWith(ask);
  }

  /** Clears the states: what is detected ends with this reason. */
  forget(reason: string): void {
    for (const state of this.#states.values()) state.forget(reason);
  }
}

// Motion state of a camera: the OR of all its detectors, cleared when it is not confirmed.

export interface MotionParts {
  readonly hold_max_ms: number;
  /** Each edge; `reason` when the camera did not report it. */
  readonly edge: (detected: boolean, reason: string | undefined) => void;
}

/** Detectors of one camera; beyond it the oldest is removed. */
const detectors_max = 256;
/** Duration of a pulse, which has no end event. */
const pulse_ms = 5_000;
/** Time in which an asked camera confirms motion. */
const answer_ms = 3_000;

/** States of the detectors, with the timer that clears unconfirmed motion. */
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

  /** An empty report, as of a pull without events, and one of a detector that stays idle confirm nothing. */
  take(notes: readonly DetectorNote[]): void {
    let isNews = false;
    for (const { key, state } of notes) {
      isNews = this.#active.delete(key) || isNews;
      if (state === 'idle' || state === 'gone') continue;
      isNews = true;
      const oldest = this.#active.size >= detectors_max ? this.#active.keys().next().value : undefined;
      if (oldest !== undefined) this.#active.delete(oldest);
      this.#active.set(key, { isPulse: state === 'pulse' });
      this.#confirmed += 1;
    }
    if (!isNews) return;
    this.#publish(undefined);
    this.#hold();
  }

  /** `ask` makes the camera send its state again, and never rejects. */
  confirmWith(ask: () => Promise<void>): void {
    this.#ask = ask;
  }

  /** Clears the state: motion ends with this reason. */
  forget(reason: string): void {
    this.#active.clear();
    this.#publish(reason);
    this.#timer.abort();
  }

  #publish(reason: string | undefined): void {
    const detected = this.#active.size > 0;
    if (detected === this.#detected) return;
    this.#detected = detected;
    this.#parts.edge(detected, reason);
  }

  /** Restarts the timer. */
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
      this.forget(texts.no_further_event);
      return;
    }
    const before = this.#confirmed;
    await this.#ask();
    await sleep(Math.min(answer_ms, ms), signal);
    if (signal.aborted || this.#confirmed !== before) return;
    this.forget(texts.not_confirmed(Math.round(ms / 1_000)));
  }
}
