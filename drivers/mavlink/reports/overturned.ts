/**
 * Recognises a multicopter that lies on its side or its back, whatever it reports of its flight. No multicopter hovers at such an
 * angle: at 70 degrees its thrust pushes it sideways with 2.7 times its weight, so that it moves, and it falls. After a crash an
 * autopilot may take itself for flying for good; its motors turn until they are switched off.
 */
import type { Decoded } from '../wire/messages.ts';

const cos_tilt_max = Math.cos((70 * Math.PI) / 180);
/** A flip takes a second, and ArduCopter's own check for a crash two. */
const lasting_ms = 3_000;
/** Both messages come once a second at least. */
const gap_max_ms = 1_600;
/** It lies still, although its motors shake it. */
const speed_max_cmps = 100;
const height_max_mm = 1_000;

export class Overturned {
  /** Since when it has been tilted without moving; undefined: it is not. */
  #since_ms: number | undefined;
  #height_mm: number | undefined;
  #attitude_ms = Number.NEGATIVE_INFINITY;
  #position_ms = Number.NEGATIVE_INFINITY;

  /** Processes each message. `now_ms` is monotonic. */
  receive({ name, fields }: Decoded, now_ms: number): void {
    if (name === 'ATTITUDE') {
      const isTilted = Math.cos(fields.roll) * Math.cos(fields.pitch) < cos_tilt_max;
      if (!isTilted || now_ms - this.#attitude_ms > gap_max_ms) this.restart();
      if (isTilted) this.#since_ms ??= now_ms;
      this.#attitude_ms = now_ms;
    } else if (name === 'GLOBAL_POSITION_INT') {
      const { alt, vx, vy, vz } = fields;
      this.#height_mm ??= alt;
      const isMoving = Math.hypot(vx, vy) > speed_max_cmps || Math.abs(vz) > speed_max_cmps;
      const isLate = now_ms - this.#position_ms > gap_max_ms;
      if (isMoving || isLate || Math.abs(alt - this.#height_mm) > height_max_mm) this.restart();
      this.#position_ms = now_ms;
    }
  }

  /** Whether it lies there, by what was received until now. */
  isEvident(now_ms: number): boolean {
    const isFresh = now_ms - Math.min(this.#attitude_ms, this.#position_ms) < gap_max_ms;
    return isFresh && this.#since_ms !== undefined && this.#attitude_ms - this.#since_ms >= lasting_ms;
  }

  /** Counts anew, from the next attitude that is tilted. */
  restart(): void {
    this.#since_ms = undefined;
    this.#height_mm = undefined;
  }
}
