/** What the detectors of a camera see and report: motion, tampering, inputs and others, each with its own state and edges. */
import type { EventFeed } from './topic-table.ts';
import type { Detection, DetectionNote, DetectorNote } from './topics.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';

export interface Edge {
  readonly detected: boolean;
  /** See `DetectorNote`. */
  readonly types: readonly string[];
  /** Set when the camera did not report it. */
  readonly reason: string | undefined;
}

export interface DetectionsParts {
  readonly hold_max_ms: number;
  /** Ends the timers. */
  readonly signal: AbortSignal;
  readonly edge: (feed: EventFeed, edge: Edge) => void;
}

/** Whether the state lasts until the camera reports its end: that of a door contact or a disk may last for days. */
const kinds: readonly (readonly [Detection, { readonly lasts: boolean }])[] = [
  ['motion', { lasts: false }],
  ['tamper', { lasts: false }],
  ['doorbell', { lasts: false }],
  ['sound', { lasts: false }],
  ['digital_input', { lasts: true }],
  ['picture_fault', { lasts: true }],
  ['storage_fault', { lasts: true }],
];

export class Detections {
  readonly #states: ReadonlyMap<Detection, Detectors>;

  constructor({ hold_max_ms, signal, edge }: DetectionsParts) {
    let wasMotion = false;
    let seen = '';
    /** Motion, and beside it what kinds are seen. */
    const motionEdge = (change: Edge): void => {
      if (change.detected !== wasMotion) edge('motion', change);
      wasMotion = change.detected;
      if (change.types.join() !== seen)
        edge('ai_detection', { ...change, detected: change.types.length > 0 });
      seen = change.types.join();
    };
    this.#states = new Map(
      kinds.map(([kind, { lasts }]) => [
        kind,
        new Detectors({
          hold_max_ms,
          signal,
          lasts,
          edge: kind === 'motion' ? motionEdge : (change) => edge(kind, change),
        }),
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

// State of one kind: the OR of all its detectors, cleared when it is not confirmed, unless it lasts.

export interface DetectorsParts {
  readonly hold_max_ms: number;
  readonly signal: AbortSignal;
  readonly lasts: boolean;
  /** Each change of whether anything is detected, and of the types. */
  readonly edge: (edge: Edge) => void;
}

/** Detectors of one camera; beyond it the oldest is removed. */
const detectors_max = 256;
/** Duration of a pulse, which has no end event. */
const pulse_ms = 5_000;
/** Time in which an asked camera confirms what it reported. */
const answer_ms = 3_000;

/** States of the detectors of one kind, with the timer that clears what is not confirmed. */
export class Detectors {
  readonly #parts: DetectorsParts;
  readonly #active = new Map<string, Pick<DetectorNote, 'types'> & { readonly isPulse: boolean }>();
  #published = '';
  #confirmed = 0;
  #timer = new AbortController();
  #ask: () => Promise<void> = async () => undefined;

  constructor(parts: DetectorsParts) {
    this.#parts = parts;
  }

  /**
   * An empty report, as of a pull without events, and one of a detector that stays idle confirm nothing. What begins and ends within
   * one report, as while the camera could not be pulled, has both edges.
   */
  take(notes: readonly DetectorNote[]): void {
    let isNews = false;
    for (const { key, state, types } of notes) {
      const wasActive = this.#active.delete(key);
      const isActive = state === 'active' || state === 'pulse';
      isNews ||= wasActive || isActive;
      if (isActive) {
        const oldest = this.#active.size >= detectors_max ? this.#active.keys().next().value : undefined;
        if (oldest !== undefined) this.#active.delete(oldest);
        this.#active.set(key, { types, isPulse: state === 'pulse' });
        this.#confirmed += 1;
      }
      this.#publish(undefined);
    }
    if (isNews) this.#hold();
  }

  /** `ask` makes the camera send its state again, and never rejects. */
  confirmWith(ask: () => Promise<void>): void {
    this.#ask = ask;
  }

  /** Clears the state: what is detected ends with this reason. */
  forget(reason: string): void {
    this.#active.clear();
    this.#publish(reason);
    this.#timer.abort();
  }

  #publish(reason: string | undefined): void {
    const detected = this.#active.size > 0;
    const types = [...new Set([...this.#active.values()].flatMap((each) => each.types))].toSorted();
    const published = detected ? `on ${types.join()}` : '';
    if (published === this.#published) return;
    this.#published = published;
    this.#parts.edge({ detected, types, reason });
  }

  /** Restarts the timer. */
  #hold(): void {
    this.#timer.abort();
    if (this.#active.size === 0) return;
    const states = [...this.#active.values()];
    const isPulse = this.#parts.lasts
      ? states.some((each) => each.isPulse)
      : states.every((each) => each.isPulse);
    if (this.#parts.lasts && !isPulse) return;
    this.#timer = new AbortController();
    const signal = AbortSignal.any([this.#timer.signal, this.#parts.signal]);
    void this.#expire(isPulse ? pulse_ms : this.#parts.hold_max_ms, isPulse, signal);
  }

  async #expire(ms: number, isPulse: boolean, signal: AbortSignal): Promise<void> {
    await sleep(ms, signal);
    if (signal.aborted) return;
    if (isPulse) {
      for (const [key, state] of this.#active) if (state.isPulse) this.#active.delete(key);
      this.#publish(texts.no_further_event);
      return;
    }
    const before = this.#confirmed;
    await this.#ask();
    await sleep(Math.min(answer_ms, ms), signal);
    if (signal.aborted || this.#confirmed !== before) return;
    this.forget(texts.not_confirmed(Math.round(ms / 1_000)));
  }
}
