/**
 * Recognises frames that were received at another place shortly before: they came back through a router, or a vehicle is
 * connected twice. A sender never repeats a frame with its sequence number and checksum at two places.
 */
import { type Frame, fingerprintOf } from '../wire/frame.ts';

/** A frame is recognised for one to two of these periods: longer than a router delays it. */
const period_ms = 2_000;
/** Of each period; 2,000 frames a second. */
const frames_max = 4_096;

export class RecentFrames {
  #current = new Map<number, string>();
  #previous: ReadonlyMap<number, string> = new Map();
  #begun_ms = Number.NEGATIVE_INFINITY;

  /** Whether the frame was received at another place; otherwise it is remembered. `now_ms` is monotonic. */
  isFromElsewhere(frame: Frame, place: string, now_ms: number): boolean {
    if (now_ms - this.#begun_ms > period_ms || this.#current.size >= frames_max) {
      this.#previous = now_ms - this.#begun_ms > 2 * period_ms ? new Map() : this.#current;
      this.#current = new Map();
      this.#begun_ms = now_ms;
    }
    const key = fingerprintOf(frame);
    const known = this.#current.get(key) ?? this.#previous.get(key);
    if (known === undefined) this.#current.set(key, place);
    return known !== undefined && known !== place;
  }
}
