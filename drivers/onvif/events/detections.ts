/** What the detectors of a camera see: motion, tampering, a doorbell, each with its own state and edges. */
import { Motion } from './motion.ts';
import type { Detection, DetectionNote } from './topics.ts';

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
